#pragma once

#include <torch/detail/static.h>
#include <torch/macros.h>
#include <torch/namespaces.h>
