#pragma once

#include <torch/macros.h>
#include <torch/namespaces.h>
