#pragma once

#include <span>
#include <string>

namespace brasa::runtime::cuda {

/// Loads the first of NVIDIA's libraries with one of these names: from the folders that BRASA_CUDA_LIBRARIES lists; one that the process has
/// loaded already; by the system's search; from CUDA_HOME; from the packages of the Pythons on the PATH. Null where there is none:
/// `why_not` says what the system said.
void* open_library(std::span<const char* const> names, std::string& why_not);

}  // namespace brasa::runtime::cuda
