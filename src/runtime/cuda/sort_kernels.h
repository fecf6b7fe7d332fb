#pragma once

#include "runtime/cuda/sort.h"

// The texts of sort_kernel, one file each.
namespace brasa::runtime::cuda {

// sort_lines.cpp
WrittenKernel sort_lines(const SortKind& kind);
WrittenKernel sort_select(const SortKind& kind);
// sort_digits.cpp
WrittenKernel sort_count(const SortKind& kind);
WrittenKernel sort_begin(const SortKind& kind);
WrittenKernel sort_move(const SortKind& kind);

}  // namespace brasa::runtime::cuda
