#include <brasa/optim/sparse_adam.h>

#include <cmath>

#include <brasa/brasa.h>

#include "optim/fields.h"
#include "optim/state.h"
#include "support/error.h"

namespace brasa::optim {

BRASA_FIELDS(SparseAdamOptions, BRASA_F(lr) BRASA_F(betas) BRASA_F(eps) BRASA_F(maximize))
BRASA_FIELDS(SparseAdamParamState, BRASA_F(step) BRASA_F(exp_avg) BRASA_F(exp_avg_sq))

void SparseAdamOptions::check() const { check_common(*this); }

void SparseAdam::update(Tensor& p, Tensor g, SparseAdamParamState& s, const SparseAdamOptions& o) {
  BRASA_CHECK(g.is_sparse(), "SparseAdam does not support dense gradients, please consider Adam instead");
  if (!s.exp_avg().defined()) {
    s.exp_avg(state_zeros_like(p));
    s.exp_avg_sq(state_zeros_like(p));
  }
  s.step(s.step() + 1);
  auto [beta1, beta2] = o.betas();
  g = g.coalesce();
  if (g._nnz() == 0) return;
  auto entries = [&](const Tensor& values) {
    return _sparse_coo_tensor_unsafe(g._indices(), values, g.sizes(), {}, true);
  };
  Tensor values = g._values();
  Tensor mean = s.exp_avg().sparse_mask(g)._values(), square = s.exp_avg_sq().sparse_mask(g)._values();
  Tensor mean_change = (values - mean) * (1 - beta1), square_change = (values * values - square) * (1 - beta2);
  s.exp_avg().add_(entries(mean_change));
  s.exp_avg_sq().add_(entries(square_change));
  auto t = static_cast<double>(s.step());
  double size = o.lr() * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
  p.add_(entries((mean + mean_change) / (square + square_change).sqrt().add_(o.eps())), -size);
}

}  // namespace brasa::optim
