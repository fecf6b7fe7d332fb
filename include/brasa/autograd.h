#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <brasa/ivalue.h>
#include <brasa/tensor.h>

namespace brasa {

/// Whether operators record what backward needs; one switch a thread, on by default.
struct BRASA_API GradMode {
  static bool is_enabled();
  static void set_enabled(bool enabled);
};

/// Sets GradMode while it lives.
class BRASA_API AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : previous_(GradMode::is_enabled()) { GradMode::set_enabled(enabled); }
  ~AutoGradMode() { GradMode::set_enabled(previous_); }
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  bool previous_;
};

class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() : AutoGradMode(false) {}
};
class EnableGradGuard : public AutoGradMode {
 public:
  EnableGradGuard() : AutoGradMode(true) {}
};

/// Neither history nor versions nor views are tracked while it lives; tensors made under it never take part in autograd.
class BRASA_API InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;
  static bool is_enabled();

 private:
  bool previous_, previous_grad_;
};

namespace autograd {

using Variable = Tensor;
using variable_list = std::vector<Tensor>;

/// How a view came to be, where that forbids to write to it with gradients.
enum class CreationMeta : uint8_t { DEFAULT, IN_CUSTOM_FUNCTION, MULTI_OUTPUT_NODE, NO_GRAD_MODE, INFERENCE_MODE };

struct AutogradMetaInterface {};
/// What autograd knows of a view.
struct DifferentiableViewMeta : AutogradMetaInterface {
  bool differentiable = true;  // false for what `detach` gives
  CreationMeta creation = CreationMeta::DEFAULT;
  bool has_bw_view() const { return differentiable; }
  CreationMeta get_creation_meta() const { return creation; }
};

/// An input of a node, as seen from where the gradient comes from.
struct Edge {
  std::shared_ptr<Node> function;
  uint32_t input_nr = 0;
  bool is_valid() const { return function != nullptr; }
};

/// One step of backward: turns gradients of the outputs of an operator into gradients of its inputs.
struct BRASA_API Node {
  Node();
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  variable_list operator()(variable_list&& gradients);
  virtual std::string name() const = 0;
  const std::vector<Edge>& next_edges() const { return next_edges_; }
  const Edge& next_edge(size_t i) const { return next_edges_[i]; }
  uint32_t num_outputs() const { return static_cast<uint32_t>(next_edges_.size()); }
  uint32_t num_inputs() const;
  uint64_t sequence_nr() const { return sequence_nr_; }
  /// Called with the gradients that this node receives; may replace them.
  void add_pre_hook(std::function<variable_list(variable_list)> hook);
  /// Called with what this node gives and what it received; may replace the former.
  void add_post_hook(std::function<variable_list(const variable_list&, const variable_list&)> hook);

  struct Internals;
  /// For the engine: gradient metadata, hooks.
  Internals& internals() const { return *internals_; }

 protected:
  friend struct NodeAccess;
  virtual variable_list apply(variable_list&& gradients) = 0;
  /// Gives up saved values after a backward that does not keep the graph.
  virtual void release_variables() {}
  /// Calls f for every tensor that it keeps for backward.
  virtual void for_each_saved(const std::function<void(const Tensor&)>&) const {}
  /// The node whose work it does in part, or null.
  virtual const Node* inner() const { return nullptr; }

  std::vector<Edge> next_edges_;
  uint64_t sequence_nr_;
  std::unique_ptr<Internals> internals_;
};

/// Finds what a failing backward comes from: while it is on, nodes remember where they were made, and what fails or gives NaN in
/// backward warns with it. One switch for the program; slow.
struct BRASA_API AnomalyMode {
  static bool is_enabled();
  static bool should_check_nan();
  static void set_enabled(bool enabled, bool check_nan = true);
};
class BRASA_API DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true);
  ~DetectAnomalyGuard();
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  bool previous_, previous_check_nan_;
};

/// Accumulates gradients of `tensors` into the leaves.
BRASA_API void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
                        std::optional<bool> retain_graph = {}, bool create_graph = false,
                        const variable_list& inputs = {});
/// Gradients of `outputs` with respect to `inputs`, not accumulated anywhere.
BRASA_API variable_list grad(const variable_list& outputs, const variable_list& inputs,
                             const variable_list& grad_outputs = {}, std::optional<bool> retain_graph = {},
                             bool create_graph = false, bool allow_unused = false);

using brasa::IValue;

/// What a custom function's forward leaves for its backward.
class BRASA_API AutogradContext {
 public:
  AutogradContext();
  ~AutogradContext();
  AutogradContext(const AutogradContext&) = delete;
  AutogradContext& operator=(const AutogradContext&) = delete;

  /// Inputs or outputs of forward that backward reads; checked against in-place changes.
  void save_for_backward(variable_list to_save);
  variable_list get_saved_variables() const;
  void mark_dirty(const variable_list& inputs);
  void mark_non_differentiable(const variable_list& outputs);
  /// Whether undefined gradients reach backward as zeros (the default).
  void set_materialize_grads(bool value);
  bool needs_input_grad(size_t output_edge_index) const;

  std::map<std::string, IValue> saved_data;

  struct Internals;
  Internals& internals() const { return *internals_; }

 private:
  std::unique_ptr<Internals> internals_;
};

namespace detail {

struct Custom {
  std::string name;
  std::function<variable_list(AutogradContext*)> forward;  // runs without recording
  variable_list (*backward)(AutogradContext*, variable_list);
  variable_list inputs;         // the tensors among the arguments, in order
  std::vector<bool> is_tensor;  // one an argument
};
BRASA_API variable_list apply_custom(Custom custom);
BRASA_API std::string demangled(const char* name);

template <class T>
void collect(const T& arg, variable_list& tensors, std::vector<bool>& is_tensor) {
  if constexpr (std::is_same_v<T, Tensor>) {
    tensors.push_back(arg);
    is_tensor.push_back(true);
  } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
    if (arg) {
      tensors.push_back(*arg);
      is_tensor.push_back(true);
    } else {
      is_tensor.push_back(false);
    }
  } else if constexpr (std::is_same_v<T, std::vector<Tensor>> || std::is_same_v<T, TensorList>) {
    for (const Tensor& t : arg) {
      tensors.push_back(t);
      is_tensor.push_back(true);
    }
  } else {
    is_tensor.push_back(false);
  }
}

}  // namespace detail

/// A differentiable function with a backward of its own:
///
///     struct Cube : Function<Cube> {
///       static Tensor forward(AutogradContext* ctx, const Tensor& x) { ctx->save_for_backward({x}); return x * x * x; }
///       static variable_list backward(AutogradContext* ctx, variable_list grads) {
///         Tensor x = ctx->get_saved_variables()[0];
///         return {grads[0] * 3 * x * x};
///       }
///     };
///     Tensor y = Cube::apply(x);
///
/// backward returns one gradient for each argument of forward, undefined ones for what is no tensor.
template <class T>
struct Function {
  template <class X = T, class... Args>
  static auto apply(Args&&... args) {
    using Result = decltype(X::forward(static_cast<AutogradContext*>(nullptr), std::forward<Args>(args)...));
    detail::Custom custom;
    custom.name = detail::demangled(typeid(X).name());
    (detail::collect<std::decay_t<Args>>(args, custom.inputs, custom.is_tensor), ...);
    custom.backward = &X::backward;
    custom.forward = [&](AutogradContext* ctx) -> variable_list {
      if constexpr (std::is_same_v<Result, Tensor>) {
        return {X::forward(ctx, std::forward<Args>(args)...)};
      } else {
        return X::forward(ctx, std::forward<Args>(args)...);
      }
    };
    variable_list out = detail::apply_custom(std::move(custom));
    if constexpr (std::is_same_v<Result, Tensor>) {
      return std::move(out[0]);
    } else {
      return out;
    }
  }
};

}  // namespace autograd

using autograd::variable_list;

}  // namespace brasa
