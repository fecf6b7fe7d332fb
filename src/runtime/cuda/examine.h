#pragma once

#include <brasa/doctor.h>

namespace brasa::runtime::cuda {

/// The driver, the GPUs, and NVIDIA's libraries.
void examine(std::vector<Finding>& findings);

}  // namespace brasa::runtime::cuda
