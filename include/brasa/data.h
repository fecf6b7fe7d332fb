#pragma once

// Datasets, their transforms, samplers, the loader with worker threads.
#include <brasa/data/chunk.h>
#include <brasa/data/data_loader.h>
#include <brasa/data/datasets.h>
#include <brasa/data/example.h>
#include <brasa/data/images.h>
#include <brasa/data/mnist.h>
#include <brasa/data/samplers.h>
#include <brasa/data/transforms.h>

namespace brasa::data {
using datasets::BatchDataset;
using datasets::Dataset;
}  // namespace brasa::data
