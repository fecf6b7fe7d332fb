#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <brasa/arg.h>
#include <brasa/serialize/archive.h>
#include <brasa/tensor.h>

namespace brasa::optim {

/// Takes the fields of options or of a state one after another, by their names in an archive; it may read or replace them.
class BRASA_API FieldVisitor {
 public:
  virtual ~FieldVisitor();
  virtual void tensor(const std::string& name, Tensor& t, bool required) = 0;
  /// The second where a field may be without a value.
  virtual void number(const std::string& name, double& x) = 0;
  virtual void number(const std::string& name, std::optional<double>& x) = 0;

  void operator()(const std::string& name, Tensor& t, bool required = false) { tensor(name, t, required); }
  void operator()(const std::string& name, std::optional<double>& x) { number(name, x); }
  void operator()(const std::string& name, std::vector<Tensor>& list);
  template <class... T>
  void operator()(const std::string& name, std::tuple<T...>& items) {
    int i = 0;
    std::apply([&](T&... item) { ((*this)(name + std::to_string(i++), item), ...); }, items);
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  void operator()(const std::string& name, T& x) {
    auto wide = static_cast<double>(x);
    number(name, wide);
    x = static_cast<T>(wide);
  }
  /// A field that older archives, and LibTorch's, have not: there it has the value `absent`.
  template <class T>
  void added(const std::string& name, T& x, T absent) {
    std::optional<double> wide;
    if (x != absent) wide = static_cast<double>(x);
    number(name, wide);
    x = wide ? static_cast<T>(*wide) : absent;
  }
};

/// What an optimizer keeps for one parameter. A type with `visit` can be saved, loaded, compared, and taken back by GradScaler.
class BRASA_API OptimizerParamState {
 public:
  virtual ~OptimizerParamState();
  virtual std::unique_ptr<OptimizerParamState> clone() const;
  /// Every field; false where the type does not tell them.
  virtual bool visit(FieldVisitor& f);
  virtual void serialize(serialize::OutputArchive& archive) const;
  virtual void serialize(serialize::InputArchive& archive);
};

template <class Derived>
class OptimizerCloneableParamState : public OptimizerParamState {
 public:
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::unique_ptr<OptimizerParamState>(new Derived(static_cast<const Derived&>(*this)));
  }
};

/// A state that counts the updates of its parameter in a tensor, which is a value of a compiled or an exported step.
class BRASA_API CountedParamState : public OptimizerParamState {
 public:
  /// float32 of no dimension. Parameters that are always updated together share it.
  const Tensor& steps() const noexcept { return steps_; }
  Tensor& steps() noexcept { return steps_; }
  int64_t step() const { return steps_.defined() ? steps_.item<int64_t>() : 0; }
  /// The count, and what else is a number that each update changes: shared with the count.
  virtual std::vector<Tensor*> numbers() { return {&steps_}; }

 protected:
  void set_step(int64_t count);

 private:
  Tensor steps_;
};

template <class Derived>
class OptimizerCountedParamState : public CountedParamState {
 public:
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::unique_ptr<OptimizerParamState>(new Derived(static_cast<const Derived&>(*this)));
  }
  using CountedParamState::step;
  Derived& step(int64_t count) {
    set_step(count);
    return static_cast<Derived&>(*this);
  }
};

namespace detail {
BRASA_API Tensor checked_rate(const Tensor& lr);
BRASA_API void rate_changed();
}  // namespace detail

/// The numbers of a parameter group.
class BRASA_API OptimizerOptions {
 public:
  virtual ~OptimizerOptions();
  // brasa::Error where the options' own type overrides neither these nor `visit`.
  virtual std::unique_ptr<OptimizerOptions> clone() const;
  virtual bool visit(FieldVisitor& f);
  virtual void serialize(serialize::OutputArchive& archive) const;
  virtual void serialize(serialize::InputArchive& archive);
  virtual double get_lr() const;
  virtual void set_lr(double lr);
  /// A tensor without dimensions as the learning rate, until a number is set: what compiled and exported steps read as a value of theirs. The
  /// number is NaN meanwhile. brasa::Error where the optimizer takes numbers alone.
  virtual void set_lr(const Tensor& lr);
  /// Undefined where a number is the rate.
  virtual Tensor lr_tensor() const;
  /// The momentum, or the first of Adam's betas; nothing where the options have neither.
  virtual std::optional<double> get_momentum() const;
  virtual void set_momentum(double momentum);
  /// Options of the same type that nobody has set, or null where there are none without arguments.
  virtual std::unique_ptr<OptimizerOptions> fresh() const;
};

template <class Derived>
class OptimizerCloneableOptions : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::unique_ptr<OptimizerOptions>(new Derived(static_cast<const Derived&>(*this)));
  }
  double get_lr() const override {
    if constexpr (requires(const Derived& o) { o.lr(); })
      return static_cast<const Derived&>(*this).lr();
    else
      return OptimizerOptions::get_lr();
  }
  using OptimizerOptions::set_lr;
  void set_lr(double lr) override {
    if constexpr (requires(Derived& o) { o.lr(lr); }) {
      if (lr == get_lr()) return;
      static_cast<Derived&>(*this).lr(lr);
      detail::rate_changed();
    } else
      OptimizerOptions::set_lr(lr);
  }
  std::optional<double> get_momentum() const override {
    const auto& o = static_cast<const Derived&>(*this);
    if constexpr (requires { o.betas(); })
      return std::get<0>(o.betas());
    else if constexpr (requires { o.momentum(); })
      return o.momentum();
    else
      return OptimizerOptions::get_momentum();
  }
  void set_momentum(double momentum) override {
    auto& o = static_cast<Derived&>(*this);
    if constexpr (requires { o.betas(); })
      std::get<0>(o.betas()) = momentum;
    else if constexpr (requires { o.momentum(momentum); })
      o.momentum(momentum);
    else
      OptimizerOptions::set_momentum(momentum);
  }
  std::unique_ptr<OptimizerOptions> fresh() const override {
    if constexpr (std::is_default_constructible_v<Derived>)
      return std::unique_ptr<OptimizerOptions>(new Derived);
    else
      return OptimizerOptions::fresh();
  }
};

/// Of optimizers whose learning rate may be a tensor.
template <class Derived>
class OptimizerTensorRateOptions : public OptimizerCloneableOptions<Derived> {
 public:
  using OptimizerCloneableOptions<Derived>::set_lr;
  void set_lr(const Tensor& lr) override {
    lr_tensor_ = detail::checked_rate(lr);
    set_lr(std::numeric_limits<double>::quiet_NaN());
  }
  Tensor lr_tensor() const override { return std::isnan(this->get_lr()) ? lr_tensor_ : Tensor(); }

 private:
  Tensor lr_tensor_;
};

/// Parameters with options of their own; without, those of the optimizer. Of options whose type tells its fields (`visit`), those that
/// have their type's default are the optimizer's, too.
class BRASA_API OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}  // NOLINT
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& o);
  OptimizerParamGroup& operator=(const OptimizerParamGroup& o);

  bool has_options() const { return options_ != nullptr; }
  /// brasa::Error if there are none.
  OptimizerOptions& options();
  const OptimizerOptions& options() const;
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }
  /// The learning rate before the first of lr_scheduler's schedules changed it.
  std::optional<double>& initial_lr() { return initial_lr_; }
  const std::optional<double>& initial_lr() const { return initial_lr_; }

 private:
  std::vector<Tensor> params_;
  std::optional<double> initial_lr_;
  std::unique_ptr<OptimizerOptions> options_;
};

/// Changes parameters in place by their gradients. Every update is made of tensor operators, so that a step inside `compile`
/// records; what changes from step to step is kept in tensors, so that it does not recompile.
class BRASA_API Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;
  using State = std::unordered_map<void*, std::unique_ptr<OptimizerParamState>>;

  Optimizer(const std::vector<OptimizerParamGroup>& param_groups, std::unique_ptr<OptimizerOptions> defaults);
  Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults);
  /// For an optimizer of the user's without options.
  explicit Optimizer(std::vector<Tensor> parameters);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;
  virtual ~Optimizer();

  /// brasa::Error for a tensor that is no leaf or is already in a group.
  void add_param_group(const OptimizerParamGroup& group);
  /// One update of every parameter that has a gradient. The closure, if given, is evaluated first (with gradients) and its
  /// loss returned.
  virtual Tensor step(LossClosure closure = nullptr);
  void zero_grad(bool set_to_none = true);

  std::vector<OptimizerParamGroup>& param_groups() noexcept { return param_groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const noexcept { return param_groups_; }
  /// By the parameter's `impl()`.
  State& state() noexcept { return state_; }
  const State& state() const noexcept { return state_; }
  const OptimizerOptions& defaults() const noexcept { return *defaults_; }
  OptimizerOptions& defaults() noexcept { return *defaults_; }
  /// Parameters in all groups.
  size_t size() const noexcept;
  /// Those of the first group.
  std::vector<Tensor>& parameters();
  const std::vector<Tensor>& parameters() const;
  void add_parameters(const std::vector<Tensor>& parameters);

  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);

 protected:
  /// Without autograd, once for each group. An optimizer overrides this, or all of `step`.
  virtual void update(OptimizerParamGroup& group);
  virtual std::unique_ptr<OptimizerParamState> new_state() const;
  OptimizerParamState* find_state(const Tensor& parameter) const;
  /// Those of the parameters that have a gradient, each with a state, by the tensor that counts them: it has counted this update. All
  /// parameters of one count are of one device, and float64 or not.
  std::vector<std::vector<Tensor>> updated_together(const std::vector<Tensor>& params);

  std::vector<OptimizerParamGroup> param_groups_;
  State state_;
  std::unique_ptr<OptimizerOptions> defaults_;

 private:
  // Equal counts become one tensor again after they were read one by one.
  void share_counts();
};

/// Whether they would be saved alike.
BRASA_API bool operator==(const OptimizerOptions& a, const OptimizerOptions& b);
BRASA_API bool operator==(const OptimizerParamState& a, const OptimizerParamState& b);

BRASA_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Optimizer& optimizer);
BRASA_API serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer);

}  // namespace brasa::optim
