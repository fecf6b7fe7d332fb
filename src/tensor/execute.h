#pragma once

#include <span>

#include "tensor/program.h"

namespace brasa::eager {

/// Runs a program on these inputs, compiling it first if its signature is new.
/// `into`: the tensor of input 0 that receives the only result; null for fresh results. No autograd, no version.
/// It runs where its operands live: brasa::Error if they live apart, but tensors of the host without dimensions go with any device. One
/// without operands runs on `place`; null: the default device.
/// `prepare`, if given, is called with the number of elements of result 0 before anything is read.
struct Prepare {
  void (*call)(void* context, int64_t numel) = nullptr;
  void* context = nullptr;
};
void execute(const Program& program, std::span<const Input> inputs, const Tensor* into, Results& results,
             Prepare prepare = {}, runtime::Device* place = nullptr);

/// Where calls without operands run in this thread while it lives, if they are not told. Null changes nothing.
class PlaceScope {
 public:
  explicit PlaceScope(runtime::Device* place);
  ~PlaceScope();
  PlaceScope(const PlaceScope&) = delete;

 private:
  runtime::Device* before_;
};
/// The innermost scope's; null outside of all.
runtime::Device* scoped_place();

}  // namespace brasa::eager
