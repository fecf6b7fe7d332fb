#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <brasa/import.h>
#include <brasa/tensor.h>

/// Programs that run alone: a function's graph as machine code in a file, with a C header.
namespace brasa::optim {
class Optimizer;
}

namespace brasa {

/// A size of an input that may differ between runs.
struct DynamicSize {
  size_t input = 0;
  int64_t dim = 0;
  int64_t least = 1;
  int64_t greatest = std::numeric_limits<int32_t>::max();
  /// Sizes of one name are equal; or each is factor · name + offset, where these are given.
  std::string name = {};
  int64_t factor = 1, offset = 0;
};

/// The only element of a tensor of integers, which has to lie from `least` (not negative) to `greatest`, else brasa::Error. `export_` takes it, as
/// what `item<int64_t>()` gives there, for a number that each run has its own of, and knows by the bounds how much memory runs may take: for sizes, places and ends
/// of slices. The counterpart of torch._check(n <= greatest).
BRASA_API int64_t item_within(const Tensor& number, int64_t least, int64_t greatest);

struct ExportOptions {
  /// What the C functions' names begin with: a C identifier.
  std::string name = "program";
  /// For messages; "in0", "in1", … where they are not given.
  std::vector<std::string> input_names = {};
  std::vector<DynamicSize> dynamic = {};
  /// What the function changes is the program's state: it can be saved and loaded by name. These give names to it, each with a prefix ("" for none):
  /// parameters, their gradients where the function reads them, and buffers are named as the module names them ("head.weight"), what an optimizer keeps as it saves
  /// that ("optimizer.state.0.exp_avg"). What the function reads of these modules is state, too, if it changes or not.
  std::vector<std::pair<std::string, std::shared_ptr<const nn::Module>>> modules = {};
  std::vector<std::pair<std::string, const optim::Optimizer*>> optimizers = {};
  /// Processors of one kind that the program has code for; it chooses when it runs. None: an archive can be written and nothing else, which takes no compiling.
  /// "nvptx+sm_80" and the like are NVIDIA's GPUs.
  std::vector<std::string> targets = {"x86-64", "x86-64+avx2", "x86-64+avx512"};
  /// Of programs for GPUs: "cublaslt" computes products and "cudnn" convolutions, which the program opens where it runs, and must be there. Else kernels of
  /// Brasa's own do.
  std::vector<std::string> libraries = {};
  /// Parameters lie in a file of their own beside the program, and are mapped.
  bool weights_beside = false;
  /// As compile's option.
  std::string numbers;
  /// An error at the export where there is no code for sizes that the ranges allow; else it is one of the run. Sizes up to a million
  /// are looked at, about 250 of them.
  bool strict = false;
};

/// A program in memory, ready to be written. Each `write` replaces the file.
class BRASA_API ExportedProgram {
 public:
  struct Parts;
  explicit ExportedProgram(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  /// PATH.o, a relocatable object, with PATH.h and PATH.hpp. Needs no other tool.
  void write_object(const std::string& path) const;
  /// PATH.so with the same headers. Error where there is no `cc`, or it fails (BRASA_CC may name another).
  void write_shared(const std::string& path) const;
  /// PATH, a program that reads and writes safetensors. Error as above.
  void write_executable(const std::string& path) const;
  /// PATH, an archive that PyTorch's torch.export.load takes. Parameters and buffers of `modules`, or of the imported program, have their names there; other
  /// tensors that the function reads are constants. Where sizes vary, the example's must hold for all of them (so not be 1). Random
  /// numbers are PyTorch's own there. brasa::Error for operators that PyTorch has not.
  void write_pt2(const std::string& path) const;
  /// The C header's text.
  std::string header() const;
  /// Of the plan and the kernels; of the parameters; of what runs change.
  size_t code_bytes() const;
  size_t weight_bytes() const;
  size_t state_bytes() const;
  /// The tensors of the state, in the order of the C functions.
  std::vector<std::string> state_names() const;

 private:
  std::shared_ptr<const Parts> parts_;
};

namespace detail {

BRASA_API ExportedProgram export_function(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                                          const std::vector<Tensor>& inputs, const ExportOptions& options);

inline std::vector<Tensor> as_list(const Tensor& t) { return {t}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> t) { return t; }
template <class... T>
std::vector<Tensor> as_list(const std::tuple<T...>& t) {
  return std::apply([](const auto&... each) { return std::vector<Tensor>{each...}; }, t);
}
template <class A, class B>
std::vector<Tensor> as_list(const std::pair<A, B>& t) {
  return {t.first, t.second};
}

// f(inputs), or f(inputs[0], inputs[1], …) for as many as f takes.
template <size_t N = 1, class F>
std::vector<Tensor> call_with(F& f, const std::vector<Tensor>& inputs) {
  if constexpr (N <= 12) {
    auto with = [&]<size_t... I>(std::index_sequence<I...>) {
      if constexpr (std::is_invocable_v<F&, decltype((void)I, inputs[0])...>) {
        if (inputs.size() == N) return as_list(f(inputs[I]...));
      }
      return call_with<N + 1>(f, inputs);
    };
    return with(std::make_index_sequence<N>());
  } else {
    throw std::invalid_argument("export_: the function does not take " + std::to_string(inputs.size()) + " tensors");
  }
}

}  // namespace detail

/// Exports a function of tensors, or a module: what it computes for tensors like `inputs` (contiguous, of the CPU; their values do not
/// matter), for all sizes that `options.dynamic` allows. Gives a tensor, a pair, a tuple or a vector of them. The function may call backward()
/// and an optimizer's step(): what it changes is the program's state. It is called several times, and nothing that it changes stays changed; gradients that it leaves behind are
/// cleared. brasa::Error where the function is no one graph (it needs a value while it runs, or differs from call to call), or uses what only libraries compute.
///
///     brasa::export_([&](Tensor x) { return net->forward(x).softmax(1); }, {rand({1, 64})}).write_object("net");
template <class F>
ExportedProgram export_(F f, const std::vector<Tensor>& inputs, const ExportOptions& options = {}) {
  if constexpr (requires { f->parameters(); }) {
    auto* module = &*f;
    auto forward = [f, module](const auto&... x) -> decltype(module->forward(x...)) { return module->forward(x...); };
    return export_(forward, inputs, options);
  } else if constexpr (std::is_invocable_v<F&, const std::vector<Tensor>&> && !std::is_invocable_v<F&, const Tensor&>) {
    return detail::export_function([f](const std::vector<Tensor>& x) mutable { return detail::as_list(f(x)); }, inputs,
                                   options);
  } else {
    return detail::export_function([f](const std::vector<Tensor>& x) mutable { return detail::call_with(f, x); },
                                   inputs, options);
  }
}

/// Exports an imported program for the sizes that its archive allows; names and ranges are the archive's.
BRASA_API ExportedProgram export_(const io::ExportedModule& program, ExportOptions options = {});

}  // namespace brasa
