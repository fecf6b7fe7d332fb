#pragma once

#include <string>

#include <brasa/compile.h>

namespace brasa::tool {

/// An SVG: of each graph its kernels from top to bottom, and beside them what lies in memory meanwhile, addresses from left to right.
std::string plot_of(const Explanation& e);

}  // namespace brasa::tool
