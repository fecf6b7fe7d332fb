#pragma once

#include <span>

#include "tensor/program.h"

namespace brasa::eager {

/// Runs a program on these inputs, compiling it first if its signature is new.
/// `into`: the tensor of input 0 that receives the only result; null for fresh results. No autograd, no version.
/// `prepare`, if given, is called with the number of elements of result 0 before anything is read.
struct Prepare {
  void (*call)(void* context, int64_t numel) = nullptr;
  void* context = nullptr;
};
void execute(const Program& program, std::span<const Input> inputs, const Tensor* into, Results& results,
             Prepare prepare = {});

}  // namespace brasa::eager
