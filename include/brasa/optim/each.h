#pragma once

#include <brasa/optim/optimizer.h>

namespace brasa::optim {

/// A parameter of an update with its gradient (to descend along) and its state.
template <class ParamState>
struct Updated {
  Tensor parameter, grad;
  ParamState& state;
};

/// An optimizer whose parameters know nothing of each other but how often they were updated.
template <class Options, class ParamState>
class EachParameter : public Optimizer {
 public:
  explicit EachParameter(const std::vector<OptimizerParamGroup>& param_groups, Options defaults = {})
      : Optimizer(param_groups, std::make_unique<Options>(defaults)) {
    for (const OptimizerParamGroup& group : param_groups_) {
      const auto& options = static_cast<const Options&>(group.options());
      options.check();
      // Most states are made at the parameter's first step; what one begins with is the optimizer's, whatever the group says.
      const auto& all = static_cast<const Options&>(this->defaults());
      if constexpr (requires(ParamState& s, const Tensor& p) { s.begin(p, all); })
        for (const Tensor& p : group.params()) {
          auto state = std::make_unique<ParamState>();
          state->begin(p, all);
          state_[p.impl()] = std::move(state);
        }
    }
  }
  explicit EachParameter(std::vector<Tensor> params, Options defaults = {})
      : EachParameter(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

 protected:
  using List = std::vector<Updated<ParamState>>;
  void update(OptimizerParamGroup& group) override {
    const auto& options = static_cast<const Options&>(group.options());
    for (const std::vector<Tensor>& together : updated_together(group.params())) {
      List list;
      for (const Tensor& p : together)
        list.push_back({p, options.maximize() ? -p.grad() : p.grad(), static_cast<ParamState&>(*find_state(p))});
      update(list, options);
    }
  }
  /// Where states count, all of the list have one count.
  virtual void update(List& list, const Options& options) = 0;
  std::unique_ptr<OptimizerParamState> new_state() const override { return std::make_unique<ParamState>(); }
};

#define BRASA_OPTIMIZER(Name)                                                    \
  class BRASA_API Name : public EachParameter<Name##Options, Name##ParamState> { \
   public:                                                                       \
    using EachParameter<Name##Options, Name##ParamState>::EachParameter;         \
                                                                                 \
   protected:                                                                    \
    using EachParameter<Name##Options, Name##ParamState>::update;                \
    void update(List& list, const Name##Options& o) override;                    \
  }
#define BRASA_OPTIONS_END \
 public:                  \
  void check() const;     \
  bool visit(FieldVisitor& f) override
#define BRASA_STATE_END \
 public:                \
  bool visit(FieldVisitor& f) override

}  // namespace brasa::optim
