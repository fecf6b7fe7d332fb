#pragma once

// LibTorch's options of the modules and functions; where both take the same, one is an alias of the other.
#include <brasa/nn/options/activation.h>
#include <brasa/nn/options/conv.h>
#include <brasa/nn/options/embedding.h>
#include <brasa/nn/options/linear.h>
#include <brasa/nn/options/loss.h>
#include <brasa/nn/options/norm.h>
#include <brasa/nn/options/padding.h>
#include <brasa/nn/options/pooling.h>
#include <brasa/nn/options/rnn.h>
#include <brasa/nn/options/vision.h>
