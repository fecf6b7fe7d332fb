#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <brasa/tensor.h>

namespace brasa {

/// How `compile` treats a function; the names are torch.compile's.
struct CompileOptions {
  /// A graph break is an error that names the operator and the reason.
  bool fullgraph = false;
  /// "inductor" compiles, for the device that the tensors live on. "aot_eager" runs the primitives of the captured graphs one by one, "eager" their operators,
  /// "interpreter" the reference. More by `register_backend`.
  std::string backend = "inductor";
  /// "default"; the others of torch.compile are errors as long as they would do nothing.
  std::string mode = "default";
  /// Call the function as it is.
  bool disable = false;
  /// Sizes and numbers that differ between calls: not set, the second distinct value makes them symbolic, so that one graph serves
  /// all; true, sizes (of other than parameters) are symbolic from the first call; false, each value has its graph.
  std::optional<bool> dynamic = std::nullopt;
  /// Graphs that are kept for one place of the function, at least 1; calls that none of them fits then run uncompiled.
  int recompile_limit = 8;
  /// For the backend. "inductor" knows "numbers": "strict", "default" or "fast" (settings.h says what they allow).
  std::map<std::string, std::string> options = {};
};

/// Names that CompileOptions::backend may have.
BRASA_API std::vector<std::string> list_backends();

/// What capture and compilation did so far.
struct Explanation {
  struct Graph {
    std::string operators;  ///< the captured graph's text
    int operator_count = 0;
    int kernels_before = 0;    ///< one for each primitive that does work
    int kernels_after = 0;     ///< after fusion
    int64_t bytes_before = 0;  ///< read and written by the former
    int64_t bytes_after = 0;
    std::string kernels;  ///< a line each: what was fused, its schedule
    std::vector<std::string>
        guards;  ///< what each input must be like, and what must hold of the sizes, for the function to take it
    std::vector<std::string>
        facts;  ///< what this compilation takes for granted beyond that; another one serves where it does not hold
    bool symbolic = false;  ///< serves more than one size or number
  };
  /// A place where a value had to be known while the function ran.
  struct Break {
    std::string reason;  ///< what needs the value: "item()"
    std::string after;   ///< the operator before it
    std::string where;   ///< the user's line, "train.cpp:31 in step()", as far as debug information tells
    int64_t count = 0;   ///< how often
  };
  std::vector<Graph> graphs;
  std::vector<Break> breaks;
  std::vector<std::string> recompiles;  ///< the guard that failed, for each graph after a place's first
  /// As text for a person; with what the compiler made of each graph, if `kernels`.
  BRASA_API std::string str(bool kernels = false) const;
};

namespace detail {

struct CompiledState;
BRASA_API std::shared_ptr<CompiledState> make_compiled_state(CompileOptions options);

/// Records while it lives; `finish` runs what is left of the recording.
class BRASA_API Recording {
 public:
  explicit Recording(const std::shared_ptr<CompiledState>& state);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

BRASA_API Explanation explain(CompiledState& state);

}  // namespace detail

/// A function whose tensor operations run as compiled graphs. Called like the function itself. Copies share the graphs.
/// May be called from several threads, which run side by side.
template <class F>
class Compiled {
 public:
  Compiled(F f, CompileOptions options)
      : f_(std::make_shared<F>(std::move(f))), state_(detail::make_compiled_state(std::move(options))) {}

  template <class... A>
  auto operator()(A&&... args) const {
    detail::Recording recording(state_);
    if constexpr (std::is_void_v<std::invoke_result_t<F&, A...>>) {
      (*f_)(std::forward<A>(args)...);
      recording.finish();
    } else {
      auto result = (*f_)(std::forward<A>(args)...);
      recording.finish();
      return result;
    }
  }
  Explanation explain() const { return detail::explain(*state_); }

 private:
  std::shared_ptr<F> f_;
  std::shared_ptr<detail::CompiledState> state_;
};

/// Compiles a function of tensors. Its body runs on every call, on tensors that only record; what was recorded runs as one
/// graph when the function returns or when a value is needed (item(), data_ptr(), printing). Side effects happen as written.
///
///     auto step = brasa::compile([&](Tensor x, Tensor y) {
///       optimizer.zero_grad();
///       Tensor loss = mse_loss(model->forward(x), y);
///       loss.backward();
///       optimizer.step();
///       return loss;
///     });
template <class F>
auto compile(F f, CompileOptions options = {}) {
  if constexpr (requires { f->forward; } || requires { f.ptr(); }) {
    auto call = [f](auto&&... args) { return f.ptr()->forward(std::forward<decltype(args)>(args)...); };
    return Compiled<decltype(call)>(std::move(call), std::move(options));
  } else {
    return Compiled<F>(std::move(f), std::move(options));
  }
}

/// Calls the function with these arguments under `compile` and tells what happened.
template <class F, class... A>
Explanation explain(F f, A&&... args) {
  auto compiled = compile(std::move(f));
  (void)compiled(std::forward<A>(args)...);
  return compiled.explain();
}

}  // namespace brasa
