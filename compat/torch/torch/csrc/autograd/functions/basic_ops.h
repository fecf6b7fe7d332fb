#pragma once

#include <torch/torch.h>

namespace brasa::autograd {

/// Hands its inputs on, and no gradient back.
struct UndefinedGrad {
  variable_list apply(variable_list inputs) { return Step::apply(inputs); }
  variable_list operator()(variable_list inputs) { return apply(std::move(inputs)); }

 private:
  struct Step : Function<Step> {
    static variable_list forward(AutogradContext* context, variable_list inputs) {
      context->saved_data["count"] = static_cast<int64_t>(inputs.size());
      return inputs;
    }
    static variable_list backward(AutogradContext* context, variable_list) {
      return variable_list(static_cast<size_t>(context->saved_data["count"].toInt()));
    }
  };
};

}  // namespace brasa::autograd
