#pragma once

#include <functional>
#include <string>
#include <vector>

#include "values.h"

namespace brasa {

using Tensors = std::vector<Tensor>;
using TensorFunction = std::function<Tensors(const Tensors&)>;
/// Gives a function as it is, or compiled.
using Wrap = std::function<TensorFunction(TensorFunction)>;

/// What can be seen of a program's results: values, shapes, strides, what takes part in autograd, and errors.
class Seen {
 public:
  void add(const Tensor& t);
  void add(const Tensors& list) {
    for (const Tensor& t : list) add(t);
  }
  void note(std::string what) { entries_.push_back({Tensor(), {}, std::move(what)}); }
  /// Runs f, and notes whether it ended with an error.
  void attempt(const std::function<void()>& f);
  bool mentions(const std::string& text) const;
  /// The first difference, or nothing.
  std::string difference(const Seen& other, double tolerance) const;

 private:
  struct Entry {
    Tensor value;
    std::vector<int64_t> strides;
    std::string note;
  };
  std::vector<Entry> entries_;
};

struct Mode {
  const char* name;
  CompileOptions options;
};
/// Automatic, dynamic, static, and beyond the recompile limit from the second graph of a place on.
const std::vector<Mode>& modes();
/// As it is, if the mode is null.
Wrap wrap_for(const Mode* mode, const char* backend = "inductor");

/// A program that makes its own tensors sees the same whether its functions are compiled or not, in all modes.
void expect_as_eager(const std::function<void(const Wrap& compile, Seen& seen)>& program, double tolerance = 1e-5,
                     const char* backend = "inductor");

}  // namespace brasa
