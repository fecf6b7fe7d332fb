#include <brasa/optim/lbfgs.h>

#include <algorithm>
#include <cmath>

#include <brasa/brasa.h>

#include "optim/fields.h"
#include "support/error.h"

namespace brasa::optim {
namespace {

double number(const Tensor& t) { return t.item<double>(); }

/// The parameters as one vector.
struct Flat {
  std::vector<Tensor>& params;
  bool maximize;

  // Of what is minimised.
  Tensor grad() const {
    std::vector<Tensor> parts;
    for (const Tensor& p : params)
      parts.push_back(p.grad().defined() ? p.grad().reshape({-1}) : zeros({p.numel()}, p.options()));
    return maximize ? -cat(parts) : cat(parts);
  }
  double loss(const Tensor& value) const { return maximize ? -number(value) : number(value); }
  std::vector<Tensor> values() const {
    std::vector<Tensor> out;
    for (const Tensor& p : params) out.push_back(p.clone());
    return out;
  }
  void set(const std::vector<Tensor>& values) const {
    for (size_t i = 0; i < params.size(); ++i) params[i].copy_(values[i]);
  }
  void add(double t, const Tensor& direction) const {
    int64_t at = 0;
    for (Tensor& p : params) {
      p.add_(direction.slice(0, at, at + p.numel()).view_as(p), t);
      at += p.numel();
    }
  }
};

struct Point {
  double t, f;
  Tensor g;
  double gtd;
};

// The minimum of the cubic through two points with their slopes (Nocedal & Wright, eq. 3.59), within bounds.
double cubic(const Point& a, const Point& b, std::optional<std::pair<double, double>> bounds = {}) {
  auto [low, high] = bounds.value_or(std::minmax(a.t, b.t));
  double d1 = a.gtd + b.gtd - 3 * (a.f - b.f) / (a.t - b.t), square = d1 * d1 - a.gtd * b.gtd;
  if (!(square >= 0)) return (low + high) / 2;  // NaN too
  double d2 = std::sqrt(square);
  double t = a.t <= b.t ? b.t - (b.t - a.t) * ((b.gtd + d2 - d1) / (b.gtd - a.gtd + 2 * d2))
                        : a.t - (a.t - b.t) * ((a.gtd + d2 - d1) / (a.gtd - b.gtd + 2 * d2));
  return std::min(std::max(t, low), high);
}

// Nocedal & Wright, algorithms 3.5 and 3.6: a step with enough decrease (c1) and a flatter slope (c2).
template <class Evaluate>
Point strong_wolfe(const Evaluate& evaluate, double t, const Tensor& d, const Point& start, double tolerance_change,
                   int64_t most, int64_t& evals) {
  constexpr double c1 = 1e-4, c2 = 0.9;
  double size = number(d.abs().max());
  auto at = [&](double x) {
    auto [f, g] = evaluate(x);
    ++evals;
    return Point{x, f, g, number(g.dot(d))};
  };
  Point previous = start, now = at(t);
  std::vector<Point> bracket;
  int64_t iteration = 0;
  for (bool found = false; iteration < most && bracket.empty() && !found; ++iteration) {
    if (now.f > start.f + c1 * now.t * start.gtd || (iteration > 1 && now.f >= previous.f)) {
      bracket = {previous, now};
      break;
    }
    if (std::abs(now.gtd) <= -c2 * start.gtd) return now;
    if (now.gtd >= 0) {
      bracket = {previous, now};
      break;
    }
    double next = cubic(previous, now, std::pair(now.t + 0.01 * (now.t - previous.t), now.t * 10));
    previous = now;
    now = at(next);
  }
  if (bracket.empty()) bracket = {start, now};
  bool slow = false;
  size_t low = bracket[0].f <= bracket[1].f ? 0 : 1;
  for (; iteration < most; ++iteration) {
    if (std::abs(bracket[1].t - bracket[0].t) * size < tolerance_change) break;
    double x = cubic(bracket[0], bracket[1]);
    auto [least, largest] = std::minmax(bracket[0].t, bracket[1].t);
    double margin = 0.1 * (largest - least);
    if (std::min(largest - x, x - least) < margin) {
      if (slow || x >= largest || x <= least) {
        x = std::abs(x - largest) < std::abs(x - least) ? largest - margin : least + margin;
        slow = false;
      } else {
        slow = true;
      }
    } else {
      slow = false;
    }
    now = at(x);
    size_t high = 1 - low;
    if (now.f > start.f + c1 * now.t * start.gtd || now.f >= bracket[low].f) {
      bracket[high] = now;
      low = bracket[0].f <= bracket[1].f ? 0 : 1;
    } else {
      if (std::abs(now.gtd) <= -c2 * start.gtd) return now;
      if (now.gtd * (bracket[high].t - bracket[low].t) >= 0) bracket[high] = bracket[low];
      bracket[low] = now;
    }
  }
  return bracket[low];
}

}  // namespace

bool LBFGSOptions::visit(FieldVisitor& f) {
  int64_t evals = max_eval().value_or(-1);
  bool strong_wolfe = line_search_fn().has_value();
  BRASA_F(lr)
  BRASA_F(max_iter)
  f("max_eval", evals);
  BRASA_F(tolerance_grad)
  BRASA_F(tolerance_change)
  BRASA_F(history_size)
  f("strong_wolfe", strong_wolfe);
  max_eval(evals < 0 ? std::nullopt : std::optional<int64_t>(evals));
  if (strong_wolfe != line_search_fn().has_value())
    line_search_fn(strong_wolfe ? std::optional<std::string>("strong_wolfe") : std::nullopt);
  f.added("search_within_max_eval", search_within_max_eval(), false);
  f.added("maximize", maximize(), false);
  return true;
}

BRASA_FIELDS(LBFGSParamState,
             BRASA_F(func_evals) BRASA_F(n_iter) BRASA_F(t) BRASA_F(prev_loss) BRASA_F(d) BRASA_F(H_diag)
                 BRASA_F(prev_flat_grad) BRASA_F(old_dirs) BRASA_F(old_stps) BRASA_F(ro))

LBFGS::LBFGS(const std::vector<OptimizerParamGroup>& param_groups, LBFGSOptions defaults)
    : Optimizer(param_groups, std::make_unique<LBFGSOptions>(std::move(defaults))) {
  BRASA_CHECK(param_groups_.size() == 1, "LBFGS doesn't support per-parameter options (parameter groups)");
  const auto& line_search = static_cast<const LBFGSOptions&>(param_groups_[0].options()).line_search_fn();
  BRASA_CHECK(!line_search || *line_search == "strong_wolfe",
              "LBFGS: only the line search 'strong_wolfe' is known, got '", line_search.value_or(""), "'");
}

std::unique_ptr<OptimizerParamState> LBFGS::new_state() const { return std::make_unique<LBFGSParamState>(); }

Tensor LBFGS::step(LossClosure closure) {
  BRASA_CHECK(closure, "LBFGS requires a closure function");
  NoGradGuard no_grad;
  auto& group = param_groups_[0];
  const auto& o = static_cast<const LBFGSOptions&>(group.options());
  Flat flat{group.params(), o.maximize()};
  int64_t max_eval = o.max_eval().value_or(o.max_iter() * 5 / 4);
  auto evaluate = [&] {
    AutoGradMode enable(true);
    return closure();
  };
  auto& s = static_cast<LBFGSParamState&>(*state_.try_emplace(group.params()[0].impl(), new_state()).first->second);

  Tensor first = evaluate();
  double loss = flat.loss(first);
  int64_t evals = 1;
  s.func_evals(s.func_evals() + 1);
  Tensor grad = flat.grad();
  if (number(grad.abs().max()) <= o.tolerance_grad()) return first;

  for (int64_t i = 0; i < o.max_iter();) {
    ++i;
    s.n_iter(s.n_iter() + 1);
    if (s.n_iter() == 1) {
      s.d(-grad);
      s.H_diag(ones({}, grad.options()));
    } else {
      Tensor y = grad.sub(s.prev_flat_grad()), step = s.d().mul(s.t());
      double ys = number(y.dot(step));
      if (ys > 1e-10) {
        if (static_cast<int64_t>(s.old_dirs().size()) == o.history_size())
          for (auto* list : {&s.old_dirs(), &s.old_stps(), &s.ro()}) list->erase(list->begin());
        s.old_dirs().push_back(y);
        s.old_stps().push_back(step);
        s.ro().push_back(full({}, 1 / ys, grad.options()));
        s.H_diag(full({}, ys / number(y.dot(y)), grad.options()));
      }
      // The two loops of algorithm 7.4.
      size_t n = s.old_dirs().size();
      std::vector<Tensor> alpha(n);
      Tensor q = -grad;
      for (size_t k = n; k-- > 0;) {
        alpha[k] = s.old_stps()[k].dot(q) * s.ro()[k];
        q = q - s.old_dirs()[k] * alpha[k];
      }
      Tensor r = q * s.H_diag();
      for (size_t k = 0; k < n; ++k) r = r + s.old_stps()[k] * (alpha[k] - s.old_dirs()[k].dot(r) * s.ro()[k]);
      s.d(r);
    }
    s.prev_flat_grad(grad.clone());
    s.prev_loss(loss);

    s.t(s.n_iter() == 1 ? std::min(1.0, 1.0 / number(grad.abs().sum())) * o.lr() : o.lr());
    double slope = number(grad.dot(s.d()));
    if (slope > -o.tolerance_change()) break;
    int64_t now = 0;
    if (o.line_search_fn()) {
      std::vector<Tensor> before = flat.values();
      auto along = [&](double t) {
        flat.add(t, s.d());
        double f = flat.loss(evaluate());
        Tensor g = flat.grad();
        flat.set(before);
        return std::pair(f, g);
      };
      constexpr int64_t kMostOfASearch = 25;
      int64_t most = o.search_within_max_eval() ? max_eval - evals : kMostOfASearch;
      Point found = strong_wolfe(along, s.t(), s.d(), {0, loss, grad, slope}, o.tolerance_change(), most, now);
      loss = found.f;
      grad = found.g;
      s.t(found.t);
      flat.add(s.t(), s.d());
    } else {
      flat.add(s.t(), s.d());
      if (i != o.max_iter()) {
        loss = flat.loss(evaluate());
        grad = flat.grad();
        now = 1;
      }
    }
    evals += now;
    s.func_evals(s.func_evals() + now);

    if (evals >= max_eval || number(grad.abs().max()) <= o.tolerance_grad()) break;
    if (number(s.d().mul(s.t()).abs().max()) <= o.tolerance_change()) break;
    if (std::abs(loss - s.prev_loss()) < o.tolerance_change()) break;
  }
  return first;
}

}  // namespace brasa::optim
