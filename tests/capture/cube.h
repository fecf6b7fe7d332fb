#pragma once

#include <brasa/autograd.h>

namespace brasa {

/// A user's own function, which saves its operand and a number: factor x³.
struct Cube : autograd::Function<Cube> {
  static Tensor forward(autograd::AutogradContext* c, const Tensor& x, double factor) {
    c->save_for_backward({x});
    c->saved_data["factor"] = factor;
    return x * x * x * factor;
  }
  static autograd::variable_list backward(autograd::AutogradContext* c, autograd::variable_list g) {
    Tensor x = c->get_saved_variables()[0];
    return {g[0] * x * x * 3 * c->saved_data["factor"].toDouble(), Tensor()};
  }
};

}  // namespace brasa
