#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "interpreted.h"
#include "layout.h"
#include "pack/sample_call.h"
#include "vectors.h"

namespace brasa::test {

/// How a call is run: gives the operator's results.
using Runner = std::function<std::vector<Tensor>(const std::vector<brasa::CallArg>& args)>;

/// Whose gradients are compared too. A compiled function takes a leaf's sizes for those of a parameter.
enum class Gradients : uint8_t { None, OfLeaves, OfClones };

/// How a sample is called.
struct Manner {
  Layout layout = Layout::RowMajor;
  Gradients gradients = Gradients::None;
  bool wide = false;  // floating tensors in float64
};

/// A row's sample in a manner, with the interpreter's answer.
class SizedCall {
 public:
  SizedCall(const ops::Row& row, const ops::Sample& sample, Manner manner);
  /// The interpreter says that it is an error.
  bool refused() const { return refused_.has_value(); }
  /// What is wrong with the answer of `runner`, or nothing.
  std::optional<std::string> check(const Runner& runner) const;

 private:
  struct Answer;
  void expect();
  void fill();
  Answer answer(const Runner& runner) const;
  verify::Entry entry() const;
  std::optional<std::string> compare(const Runner& runner, const Answer& got) const;

  const ops::Row& row_;
  const ops::Sample& sample_;
  Manner manner_;
  Call call_;
  Outcome expected_;
  std::optional<std::string> refused_, broken_;  // broken: the interpreter's own fault
};

/// Whether the row's result is the same in this layout: not where it follows from where operands lie, and a repeated row makes
/// matrices singular.
bool takes(const ops::Row& row, Layout layout);

}  // namespace brasa::test
