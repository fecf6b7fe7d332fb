#pragma once

#include <memory>
#include <optional>

#include "tensor/dispatch.h"

namespace brasa::eager {

/// Integers beyond it are never symbols: sums and products of symbols stay far below 2^63.
inline constexpr int64_t kLargestSymbol = int64_t{1} << 48;

/// A number as a tensor of its dtype has it.
struct NumberBytes {
  alignas(16) unsigned char at[16];
};
/// Where it was written: at the begin of `bytes`.
void* write_number(const Scalar& s, NumberBytes& bytes);

/// A call's arguments, split into what selects the computation (words) and what it runs on (inputs).
struct Parsed {
  Words words;
  SmallVector<InputTensor, 8> inputs;
  struct Number {
    NumberBytes bytes;
    int input;
  };
  SmallVector<Number, 4> numbers;
  /// Integers that are symbols of the computation: inputs without memory, whose sizes are their magnitudes.
  SmallVector<int64_t, 12> magnitudes;
  struct Sizes {
    int input;
    uint32_t first;  // of `magnitudes`
  };
  SmallVector<Sizes, 4> sizes;
  Tensor key;  // of a random row
  Generator* stream = nullptr;
  std::optional<Generator> given;  // keeps the caller's stream
  int key_input = -1;
  runtime::Device* place = nullptr;  // that the caller named
  /// Elements are not read: tensors need not have them yet.
  bool described = false;

  void add(const Tensor& t) { inputs.push_back(described ? InputTensor::described(t) : InputTensor::of(t)); }
};

/// The device that an argument names; null if none does.
runtime::Device* named_place(ArrayRef<CallArg> args);

void parse(const Operator& op, ArrayRef<CallArg> args, Parsed& p);
/// The computation for calls with these words.
std::unique_ptr<RowComputation> make_computation(const Operator& op, ArrayRef<CallArg> args);

/// The same, as the operator keeps it, for tensors whose elements need not be there yet; `p` is what the call takes apart to.
const RowComputation& computation_of(Operator& op, ArrayRef<CallArg> args, Parsed& p);

/// How a computation takes an argument that is no tensor: it knows it, it is what the parameter has when it is left out, an input, or
/// the size of one.
enum class Pass : uint8_t { Word, Default, Number, Size };
Pass pass_of(const Operator::Parameter& p, const CallArg& a);
/// What an argument that is passed as a number stands for.
Scalar number_for(const Operator::Parameter& p, const CallArg& a);
/// A number of the computation as a tensor that takes part in type promotion like a number.
Tensor weak_tensor(const Scalar& s);

}  // namespace brasa::eager
