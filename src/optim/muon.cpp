#include <brasa/optim/muon.h>

#include <algorithm>
#include <cmath>

#include <brasa/brasa.h>

#include "optim/fields.h"
#include "optim/state.h"

namespace brasa::optim {

bool MuonOptions::visit(FieldVisitor& f) {
  bool given = adjust_lr_fn() == "match_rms_adamw", match = given;
  BRASA_F(lr)
  BRASA_F(weight_decay)
  BRASA_F(momentum)
  BRASA_F(nesterov)
  BRASA_F(ns_coefficients)
  BRASA_F(eps)
  BRASA_F(ns_steps)
  BRASA_F(maximize)
  f("match_rms_adamw", match);
  if (match != given) adjust_lr_fn(match ? "match_rms_adamw" : "original");
  return true;
}
BRASA_FIELDS(MuonParamState, BRASA_F(momentum_buffer))

void MuonOptions::check() const {
  check_common(*this);
  BRASA_CHECK(momentum() >= 0, "Muon: Invalid momentum value: ", momentum());
  BRASA_CHECK(adjust_lr_fn() == "original" || adjust_lr_fn() == "match_rms_adamw",
              "Muon: adjust_lr_fn must be 'original' or 'match_rms_adamw', got '", adjust_lr_fn(), "'");
  BRASA_CHECK(0 <= ns_steps() && ns_steps() < 100, "Muon: ns_steps must be in [0, 100), got ", ns_steps());
}

namespace {

// U Vᵀ of the singular value decomposition U S Vᵀ, roughly.
Tensor orthogonal(const Tensor& m, const MuonOptions& o) {
  auto [a, b, c] = o.ns_coefficients();
  bool tall = m.size(0) > m.size(1);
  Tensor x = m.to(kBFloat16);
  if (tall) x = x.t();
  x = x / x.norm().clamp_min(o.eps());
  for (int64_t i = 0; i < o.ns_steps(); ++i) {
    Tensor gram = x.matmul(x.t());
    x = addmm(x, addmm(gram, gram, gram, b, c), x, a, 1);
  }
  return tall ? x.t() : x;
}

}  // namespace

void Muon::update(List& list, const MuonOptions& o) {
  for (auto& [p, g, s] : list) {
    BRASA_CHECK(p.dim() == 2, "Muon only supports 2D parameters, whereas we found a parameter with sizes ", p.sizes());
    make(s.momentum_buffer(), p);
    s.momentum_buffer().lerp_(g, 1 - o.momentum());
    Tensor direction = o.nesterov() ? g.lerp(s.momentum_buffer(), o.momentum()) : s.momentum_buffer();
    auto rows = static_cast<double>(p.size(0)), columns = static_cast<double>(p.size(1));
    double adjusted = o.lr() * (o.adjust_lr_fn() == "original" ? std::sqrt(std::max(1.0, rows / columns))
                                                               : 0.2 * std::sqrt(std::max(rows, columns)));
    p.mul_(1 - o.lr() * o.weight_decay());
    p.sub_(orthogonal(direction, o), adjusted);
  }
}

}  // namespace brasa::optim
