#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
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
  /// "default"; "max-autotune" and "max-autotune-no-cudagraphs", with which libraries measure the ways that they know,
  /// and the CPU's kernels are compiled with several schedules, of which the fastest stays. With the former and
  /// "reduce-overhead" a GPU gets the launches of a graph as one call from the second run on. Results are the caller's all the same.
  std::string mode = "default";
  /// Call the function as it is.
  bool disable = false;
  /// Sizes and numbers that differ between calls: not set, the second distinct value makes them symbolic, so that one graph serves
  /// all; true, sizes (of other than parameters) are symbolic from the first call; false, each value has its graph.
  std::optional<bool> dynamic = std::nullopt;
  /// Graphs that are kept for one place of the function, at least 1; calls that none of them fits then run uncompiled.
  int recompile_limit = 8;
  /// The promise that the body has no effects but through tensors, and depends on nothing but its arguments (tensors, numbers and lists of
  /// them) and the tensors that it met in its first calls, such as parameters. Later calls then check that those are as they were, and run
  /// the graph without the body. What breaks a graph, reads a value or leaves a new tensor anywhere but in its result or in a `grad()`
  /// is not skipped; `explain` says why. A change of what the body reads otherwise (a learning rate, a variable of the program) is not seen,
  /// unless it is `train()` or `eval()` of a module: call `reset()`.
  bool pure = false;
  /// For the backend. "inductor" knows "numbers", "fall_back", "tune_seconds", "memory_budget" and "trace_nan": settings() says what they do.
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
    /// A value in the graph's own memory, while kernels `first` to `last` run, counted from 0. Sizes are those of the example call.
    struct Buffer {
      std::string type;  ///< "f32[8, 64]"
      bool prepared;     ///< made once of what lasts, in memory that is kept; else in the arena of each run
      int64_t offset, bytes;
      size_t first, last;
    };
    std::vector<Buffer> memory;  ///< in the order in which they are written
    int64_t arena_bytes = 0, prepared_bytes = 0;
    int64_t kept_bytes = 0;  ///< of values that wait for a backward pass outside of the function
    BRASA_API std::string memory_plan() const;
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
    std::string advice;  ///< what would keep it in the graph, where that can be told
  };
  std::vector<Graph> graphs;
  std::vector<Break> breaks;
  std::vector<Break> opaque_calls;      ///< of functions that `allow_in_graph` gave; `reason` is empty
  std::vector<std::string> recompiles;  ///< the guard that failed, for each graph after a place's first
  int64_t skipped = 0;                  ///< calls of a pure function that ran without its body
  std::string not_skipped;              ///< why the last call whose body ran will not be, for one that is called pure
  std::string slower;                   ///< why calls run as they are, where that was found to be faster; else empty
  /// As text for a person; with what the compiler made of each graph, if `kernels`.
  BRASA_API std::string str(bool kernels = false) const;
};

namespace detail {

struct CompiledFunction;
BRASA_API std::shared_ptr<CompiledFunction> make_compiled(CompileOptions options);

// What a call of a pure function may be compared by: tensors, numbers, lists of them.
template <class T>
constexpr bool kComparable = std::is_arithmetic_v<T> || std::is_same_v<T, Tensor> || std::is_same_v<T, Scalar>;
template <class T>
constexpr bool kComparable<ArrayRef<T>> = kComparable<T>;
template <class T>
constexpr bool kComparable<std::vector<T>> = kComparable<T> && !std::is_same_v<T, bool>;
template <class T>
constexpr bool kComparable<std::optional<T>> = kComparable<T>;

/// The arguments of a call of a pure function. They refer to the caller's.
struct Arguments {
  std::vector<const Tensor*> tensors;
  std::vector<Scalar> numbers;  ///< lengths of lists among them

  void add(const Tensor& t) { tensors.push_back(&t); }
  void add(const Scalar& s) { numbers.push_back(s); }
  template <class T>
    requires std::is_arithmetic_v<T>
  void add(T v) {
    numbers.emplace_back(v);
  }
  template <class T>
  void add(ArrayRef<T> list) {
    numbers.emplace_back(list.size());
    for (const T& item : list) add(item);
  }
  template <class T>
  void add(const std::vector<T>& list) {
    add(ArrayRef<T>(list));
  }
  template <class T>
  void add(const std::optional<T>& v) {
    numbers.emplace_back(v.has_value());
    if (v) add(*v);
  }
};

/// How the results of a pure function are a list of tensors.
template <class R>
struct Results;
template <>
struct Results<Tensor> {
  static std::vector<Tensor> list(const Tensor& r) { return {r}; }
  static Tensor of(std::vector<Tensor>&& list) { return std::move(list[0]); }
};
template <>
struct Results<std::vector<Tensor>> {
  static std::vector<Tensor> list(const std::vector<Tensor>& r) { return r; }
  static std::vector<Tensor> of(std::vector<Tensor>&& list) { return std::move(list); }
};
template <class... T>
  requires(std::is_same_v<T, Tensor> && ...)
struct Results<std::tuple<T...>> {
  static std::vector<Tensor> list(const std::tuple<T...>& r) {
    return std::apply([](auto&... t) { return std::vector<Tensor>{t...}; }, r);
  }
  static std::tuple<T...> of(std::vector<Tensor>&& list) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>(std::move(list[I])...);
    }(std::index_sequence_for<T...>());
  }
};
template <>
struct Results<std::pair<Tensor, Tensor>> {
  static std::vector<Tensor> list(const std::pair<Tensor, Tensor>& r) { return {r.first, r.second}; }
  static std::pair<Tensor, Tensor> of(std::vector<Tensor>&& list) { return {std::move(list[0]), std::move(list[1])}; }
};

/// A variable of the caller's as it is; a temporary is still there behind the body.
template <class A>
using PureArgument = std::conditional_t<std::is_lvalue_reference_v<A>, A, const A&>;
template <class R>
concept TensorResult = std::is_void_v<R> || requires { Results<R>::list; };
template <class F, class... A>
concept Skippable = (kComparable<std::remove_cvref_t<A>> && ...) && std::is_invocable_v<F&, A...> &&
                    TensorResult<std::decay_t<std::invoke_result_t<F&, A...>>>;

/// Of a call whose arguments or results are of other types.
BRASA_API void cannot_skip(CompiledFunction& function);
BRASA_API bool is_pure(const CompiledFunction& function);
/// Does what the body would do, if that is known for such a call; else false.
BRASA_API bool skip(CompiledFunction& function, const Arguments& arguments, std::vector<Tensor>& results);

/// Records while it lives; `finish` runs what is left of the recording.
class BRASA_API Recording {
 public:
  /// `arguments`: of a pure function.
  explicit Recording(CompiledFunction& function, const Arguments* arguments = nullptr);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  void finish();
  /// Behind `finish`: later calls of a pure function may give results that are made as these are.
  void learn(const std::vector<Tensor>& results);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  bool plain_ = false;  // the call runs as it is, where that is faster
};

/// Ends what was recorded so far; nothing is recorded while it lives. Opaque, it is no graph break but a call in the graph, and does nothing
/// where no compiled function records.
class BRASA_API Unrecorded {
 public:
  explicit Unrecorded(bool opaque = false);
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
    if (detail::is_pure(*state_)) {
      if constexpr (detail::Skippable<F, detail::PureArgument<A>...>)
        return call_pure<detail::PureArgument<A>...>(args...);
      detail::cannot_skip(*state_);
    }
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
  template <class... A>
  auto call_pure(A... args) const {
    using R = std::decay_t<std::invoke_result_t<F&, A...>>;
    detail::Arguments arguments;
    (arguments.add(args), ...);
    std::vector<Tensor> results;
    bool skipped = detail::skip(*state_, arguments, results);
    std::optional<detail::Recording> recording;
    if (!skipped) recording.emplace(*state_, &arguments);
    if constexpr (std::is_void_v<R>) {
      if (skipped) return;
      (*f_)(args...);
      recording->finish();
      recording->learn({});
    } else {
      if (skipped) return detail::Results<R>::of(std::move(results));
      R result = (*f_)(args...);
      recording->finish();
      recording->learn(detail::Results<R>::list(result));
      return result;
    }
  }

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

/// A function that is one opaque call in the graphs of compiled functions: it runs as it is each time, on tensors that have memory, and gradients
/// flow through it as they do eagerly. So it may read values (`item`, `data_ptr`, foreign code) without a graph break, `fullgraph` takes it,
/// and its results may be of any size. Nothing is fused across the call: kernels end before it. In bodies of control flow and under func's
/// transformations it is called as it is, and what it does is seen.
template <class F>
auto allow_in_graph(F f) {
  return [f = std::move(f)](auto&&... args) mutable -> decltype(auto) {
    detail::Unrecorded here(true);
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
