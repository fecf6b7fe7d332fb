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

class CapturedGraph;

/// Runs a captured graph: takes its inputs and gives its outputs, both in the graph's order. Outputs are new tensors; where the
/// function wrote into a tensor, its new value is one of them and is copied there afterwards. An input without history.
using GraphFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;
/// Makes one of a captured graph (see backend.h).
using Backend = std::function<GraphFunction(const CapturedGraph& graph)>;

/// A backend by its name, or a function that is one.
class BackendName : public std::string {
 public:
  BackendName(const char* name) : std::string(name) {}             // NOLINT
  BackendName(std::string name) : std::string(std::move(name)) {}  // NOLINT
  template <class F>
    requires std::is_invocable_r_v<GraphFunction, F&, const CapturedGraph&>
  BackendName(F f) : std::string("a function"), function(std::make_shared<Backend>(std::move(f))) {}  // NOLINT
  std::shared_ptr<const Backend> function;  ///< null: the one of this name
};

/// How `compile` treats a function; the names are torch.compile's.
struct CompileOptions {
  /// A graph break is an error that names the operator and the reason.
  bool fullgraph = false;
  /// "inductor" compiles, for the device that the tensors live on. "aot_eager" runs the primitives of the captured graphs one by one, "eager" their operators,
  /// "interpreter" the reference. More by `register_backend`, or a function itself.
  BackendName backend = "inductor";
  /// "default"; "max-autotune" and "max-autotune-no-cudagraphs", with which libraries measure the ways that they know. torch.compile's
  /// "reduce-overhead" is an error as long as it would do nothing.
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

struct CompiledFunction;
BRASA_API std::shared_ptr<CompiledFunction> make_compiled(CompileOptions options);

/// Records while it lives; `finish` runs what is left of the recording.
class BRASA_API Recording {
 public:
  explicit Recording(CompiledFunction& function);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Ends what was recorded so far; nothing is recorded while it lives.
class BRASA_API Unrecorded {
 public:
  Unrecorded();
  ~Unrecorded();
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

BRASA_API Explanation explain(CompiledFunction& function);

}  // namespace detail

/// A function whose tensor operations run as compiled graphs. Called like the function itself. Copies share the graphs.
/// May be called from several threads, which run side by side.
template <class F>
class Compiled {
 public:
  Compiled(F f, CompileOptions options)
      : f_(std::make_shared<F>(std::move(f))), state_(detail::make_compiled(std::move(options))) {}

  template <class... A>
  auto operator()(A&&... args) const {
    detail::Recording recording(*state_);
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
  std::shared_ptr<detail::CompiledFunction> state_;
};

/// A module whose `forward` is compiled, and which is the module for all else: `net->parameters()`, `net->to(kCUDA)`, `net->train()`,
/// `save(net.ptr(), "net.pt")`.
template <class M, class F>
class CompiledModule : public Compiled<F> {
 public:
  CompiledModule(std::shared_ptr<M> module, F call, CompileOptions options)
      : Compiled<F>(std::move(call), std::move(options)), module_(std::move(module)) {}
  M* operator->() const { return module_.get(); }
  M& operator*() const { return *module_; }
  const std::shared_ptr<M>& ptr() const { return module_; }

 private:
  std::shared_ptr<M> module_;
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
  auto module_of = [](const F& m) {
    if constexpr (requires { m.ptr(); })
      return m.ptr();
    else
      return m;  // a shared_ptr
  };
  if constexpr (requires { f->parameters(); }) {
    auto module = module_of(f);
    auto call = [module](auto&&... args) { return module->forward(std::forward<decltype(args)>(args)...); };
    using M = typename decltype(module)::element_type;
    return CompiledModule<M, decltype(call)>(std::move(module), std::move(call), std::move(options));
  } else {
    return Compiled<F>(std::move(f), std::move(options));
  }
}

/// A function that is never recorded, nor is what it calls: a graph ends before it and another one begins after it.
template <class F>
auto disable(F f) {
  return [f = std::move(f)](auto&&... args) mutable -> decltype(auto) {
    detail::Unrecorded here;
    return std::invoke(f, std::forward<decltype(args)>(args)...);
  };
}

/// Whether this thread is in the body of a compiled function.
BRASA_API bool is_compiling();

/// Compiled functions that meet this tensor first leave this size open, so that their first graph serves all of them: for a batch or a
/// length that is known to differ from call to call. Nothing is said of other dimensions. A size of 0 or 1 keeps a graph of its own,
/// as does one that the function needs to know, and `dynamic = false` is stronger. A view is read through the tensor that it looks at:
/// of a view, all sizes of that one are left open. brasa::Error if there is no such dimension (negative ones count from the end), or if
/// its size is not in [min, max].
BRASA_API void mark_dynamic(const Tensor& t, int64_t dim, std::optional<int64_t> min = std::nullopt,
                            std::optional<int64_t> max = std::nullopt);
BRASA_API void mark_dynamic(const Tensor& t, const std::vector<int64_t>& dims);

/// What all compiled functions do from now on; gives what they did before. "default"; "force_eager": call the function as it is;
/// "eager_on_recompile": use the graphs that are there, and run uncompiled what fits none of them; "fail_on_recompile": that is an error.
BRASA_API std::string set_stance(const std::string& stance);

/// All compiled functions forget their graphs, explanations and recompiles, and begin anew with their next call.
BRASA_API void reset();

/// Calls the function with these arguments under `compile` and tells what happened.
template <class F, class... A>
Explanation explain(F f, A&&... args) {
  auto compiled = compile(std::move(f));
  (void)compiled(std::forward<A>(args)...);
  return compiled.explain();
}

}  // namespace brasa
