#pragma once

#include <torch/data/detail.h>
#include <torch/detail/static.h>
#include <torch/macros.h>
#include <torch/namespaces.h>
