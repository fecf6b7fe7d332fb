#pragma once

#include <optional>
#include <span>

#include "program/variants.h"
#include "support/scoped.h"
#include "tensor/computation.h"

namespace brasa::eager {

/// Runs a computation on these inputs, compiling it first if its signature is new.
/// `into`: the tensor of input 0 that receives the only result; null for fresh results. No autograd, no version.
/// It runs where its operands live: brasa::Error if they live apart, but tensors of the host without dimensions go with any device. One
/// without operands runs on `place`; null: the default device.
/// `prepare`, if given, is called with the number of elements of result 0, or 0 if input `read` is not, before anything is read.
struct Prepare {
  void (*call)(void* context, int64_t numel) = nullptr;
  void* context = nullptr;
  size_t read = 0;
};
/// The variant that ran, where it also serves all other row-major operands of one shape, of this rank and of these dtypes; else null.
const program::Variant* execute(const Computation& computation, std::span<const InputTensor> inputs, const Tensor* into,
                                Results& results, Prepare prepare = {}, runtime::Device* place = nullptr);

/// How those results of `execute` lie that have the sizes of a loop over the inputs, whose elements are not read. Others are
/// row-major; all of them where this is empty.
struct ResultLayout {
  Sizes sizes, strides;
};
ResultLayout layout_of_results(const Computation& computation, std::span<const InputTensor> inputs);

/// In which orders of dimensions its results lie, see Orders; for computations that do not work element by element.
std::vector<Sizes> orders_of_results(const Computation& computation, std::span<const InputTensor> inputs);

/// The inputs whose elements a computation reads, for inputs of these types and sizes.
std::vector<bool> reads_of(const Computation& computation, std::span<const InputTensor> inputs);
/// Which of its results there are.
std::vector<bool> gives_of(const Computation& computation, std::span<const InputTensor> inputs);

/// Whether a computation runs loops, for inputs of these types; absent where it refuses them, as the call itself will say.
std::optional<bool> makes_kept(const Computation& computation, std::span<const InputTensor> inputs);

/// Runs a program all of whose results are fresh.
std::vector<Tensor> run(const program::Variant& variant, std::span<const compiler::Operand> inputs);
/// A tensor as an operand.
compiler::Operand operand_of(const Tensor& t);

/// Where calls without operands run in this thread while it lives, if they are not told. Null changes nothing.
class DeviceScope : Scoped<runtime::Device*> {
 public:
  explicit DeviceScope(runtime::Device* place);
};
/// The innermost scope's; null outside of all.
runtime::Device* scoped_device();

}  // namespace brasa::eager
