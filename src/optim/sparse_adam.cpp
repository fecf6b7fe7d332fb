#include <brasa/optim/sparse_adam.h>

#include <brasa/brasa.h>

#include "optim/fields.h"
#include "optim/state.h"
#include "support/error.h"

namespace brasa::optim {

BRASA_FIELDS(SparseAdamOptions, BRASA_F(lr) BRASA_F(betas) BRASA_F(eps) BRASA_F(maximize))
BRASA_FIELDS(SparseAdamParamState, BRASA_COUNT BRASA_F(exp_avg) BRASA_F(exp_avg_sq))

void SparseAdamOptions::check() const { check_common(*this); }

void SparseAdam::update(List& list, const SparseAdamOptions& o) {
  auto [beta1, beta2] = o.betas();
  auto [step_size, correction] = adam_scales(o, list.front().state.steps(), list.front().parameter);
  for (auto& [p, g, s] : list) {
    BRASA_CHECK(g.is_sparse(), "SparseAdam does not support dense gradients, please consider Adam instead");
    make(s.exp_avg(), p);
    make(s.exp_avg_sq(), p);
    g = g.coalesce();
    if (g._nnz() == 0) continue;
    auto entries = [&, &g = g](const Tensor& values) {
      return _sparse_coo_tensor_unsafe(g._indices(), values, g.sizes(), {}, true);
    };
    Tensor values = g._values();
    Tensor mean = s.exp_avg().sparse_mask(g)._values(), square = s.exp_avg_sq().sparse_mask(g)._values();
    Tensor mean_change = (values - mean) * (1 - beta1), square_change = (values * values - square) * (1 - beta2);
    s.exp_avg().add_(entries(mean_change));
    s.exp_avg_sq().add_(entries(square_change));
    Tensor root = (square + square_change).sqrt().add_(o.eps());
    p.add_(entries((mean + mean_change) / root * (step_size * correction)), -1);
  }
}

}  // namespace brasa::optim
