#pragma once

#include "compiler/libraries/fourier/lanes.h"

/// Transforms of one line at a time, whose numbers lie beside each other: vectors run along it.
namespace brasa::compiler::fourier {

/// Whether a line of this length has a matrix whose columns and rows fill the lanes.
template <class T>
bool fills_vectors(const Stages<T>& stages);
/// How many numbers `run_along` needs as memory of its own.
template <class T>
int64_t memory_along(const Stages<T>& stages);
/// As `run`, of a group of one complex line.
template <class T>
void run_along(const Stages<T>& stages, const Group<T>& group, T* memory);

}  // namespace brasa::compiler::fourier
