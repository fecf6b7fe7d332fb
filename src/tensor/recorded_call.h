#pragma once

#include <forward_list>
#include <memory>
#include <optional>
#include <vector>

#include "tensor/args.h"
#include "tensor/dispatch.h"
#include "tensor/recorder.h"

namespace brasa::eager {

/// A generator's key for one call: a tensor that backward can keep, still to be filled.
Tensor new_key();
void fill(const Tensor& key, Generator::Key k);
/// The parameter of a random row that is its generator, or its key.
size_t generator_of(const ops::Row& row);
/// Whether a call of a random row, whose key is among the arguments, reads that. Dropout that is off does not.
bool draws(const ops::Row& row, CallArgs args);

/// A call as a recorder gets it: random rows have their key among the arguments, where their derivative finds it too, and
/// numbers that stand for tensors are tensors.
class RecordedCall {
 public:
  RecordedCall(Recorder& recorder, Operator& op, CallArgs args);
  CallArgs args() const { return args_; }
  void run(Results& out);
  /// Lets the results of a functional call lie as eager's do.
  void lay_out(const Results& results) const;

 private:
  // Of a call that a recorder does not get as it is.
  struct Changed {
    explicit Changed(std::vector<CallArg> all) : args(std::move(all)) {}
    std::vector<CallArg> args;
    std::forward_list<Tensor> tensors;
    Literals defaults;
    std::optional<Generator> stream;  // of a random row
    Tensor key;
  };
  const Tensor& replace(size_t at, Tensor t);

  Recorder& recorder_;
  Operator& op_;
  CallArgs args_;
  std::unique_ptr<Changed> changed_;
};

}  // namespace brasa::eager
