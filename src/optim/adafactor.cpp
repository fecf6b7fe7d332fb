#include <brasa/optim/adafactor.h>

#include <limits>

#include <brasa/brasa.h>

#include "optim/fields.h"
#include "optim/state.h"

namespace brasa::optim {

BRASA_FIELDS(AdafactorOptions,
             BRASA_F(lr) BRASA_F(beta2_decay) BRASA_F(eps) BRASA_F(d) BRASA_F(weight_decay) BRASA_F(maximize))
BRASA_FIELDS(AdafactorParamState, BRASA_COUNT BRASA_F(row_var) BRASA_F(col_var) BRASA_F(variance))

void AdafactorOptions::check() const {
  BRASA_CHECK(lr_tensor().defined() || lr() >= 0, "Adafactor: Learning rate should be >= 0 but is: ", lr());
  BRASA_CHECK(beta2_decay() <= 0, "Adafactor: beta2_decay should be <= 0 but is: ", beta2_decay());
  BRASA_CHECK(std::get<0>(eps()).value_or(0) >= 0,
              "Adafactor: epsilon1 should be >= 0 but is: ", std::get<0>(eps()).value_or(0));
  BRASA_CHECK(std::get<1>(eps()) >= 0, "Adafactor: epsilon2 should be >= 0 but is: ", std::get<1>(eps()));
  BRASA_CHECK(d() >= 1, "Adafactor: Clipping threshold d should be >= 1 but is: ", d());
  BRASA_CHECK(weight_decay() >= 0, "Adafactor: weight_decay should be >= 0 but is: ", weight_decay());
}

namespace {

Tensor root_mean_square(const Tensor& t) { return t.square().mean().sqrt(); }

}  // namespace

void Adafactor::update(List& list, const AdafactorOptions& o) {
  const Tensor& first = list.front().parameter;
  Tensor t = list.front().state.steps().to(number_dtype(first)), weight = t.pow(o.beta2_decay());
  Tensor rate = minimum(rate_of(o, first), t.rsqrt());
  for (auto& [p, g, s] : list) {
    double floor = std::get<0>(o.eps()).value_or(epsilon_of(p.scalar_type()));
    Tensor size = root_mean_square(p).clamp_min(std::get<1>(o.eps()));  // before the decay
    g = decayed(p, g, o, true);
    Tensor squares = g.square(), estimate;
    if (g.dim() > 1) {
      Tensor rows = squares.mean(-1, true), columns = squares.mean(-2, true);
      make(s.row_var(), rows);
      make(s.col_var(), columns);
      s.row_var().lerp_(rows, weight);
      s.col_var().lerp_(columns, weight);
      estimate = s.row_var().matmul(s.col_var()) / s.row_var().mean(-2, true).clamp_min(floor);
    } else {
      make(s.variance(), p);
      s.variance().lerp_(squares, weight);
      estimate = s.variance();
    }
    Tensor update = g * estimate.clamp_min(floor * floor).rsqrt();
    Tensor scale = (root_mean_square(update) / o.d()).clamp_min(1);
    p.sub_(update * (size * rate / scale));
  }
}

}  // namespace brasa::optim
