#include <brasa/amp.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include <brasa/autograd.h>
#include <brasa/brasa.h>

#include "support/error.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"

namespace brasa::amp {

GradScaler::GradScaler(GradScalerOptions options) : options_(std::move(options)) {
  if (!is_enabled()) return;
  BRASA_CHECK(options_.growth_factor() > 1, "GradScaler: the growth factor must be > 1.0, got ",
              options_.growth_factor());
  BRASA_CHECK(options_.backoff_factor() < 1, "GradScaler: the backoff factor must be < 1.0, got ",
              options_.backoff_factor());
  Recorder::Scope none(nullptr);
  scale_ = full({}, options_.init_scale(), kFloat32);
  growth_tracker_ = zeros({}, kInt64);
}
GradScaler::~GradScaler() = default;
GradScaler::GradScaler(GradScaler&&) noexcept = default;
GradScaler& GradScaler::operator=(GradScaler&&) noexcept = default;

namespace {
// Nothing to do, or a copy between devices, for which the host waits.
Tensor on(Device device, const Tensor& t) { return t.device() == device ? t : t.to(device); }
}  // namespace

// Once: from then on nothing of it goes to the host unless somebody asks for it.
void GradScaler::live_on(Device device) const {
  if (std::exchange(placed_, true)) return;
  Recorder::Scope none(nullptr);
  NoGradGuard no_grad;
  scale_ = on(device, scale_);
  growth_tracker_ = on(device, growth_tracker_);
}

Tensor GradScaler::scale(const Tensor& outputs) const {
  if (!is_enabled()) return outputs;
  live_on(outputs.device());
  return outputs * on(outputs.device(), scale_);
}
std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& outputs) const {
  std::vector<Tensor> out;
  for (const Tensor& t : outputs) out.push_back(scale(t));
  return out;
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!is_enabled()) return;
  Stage& stage = stages_[&optimizer];
  BRASA_CHECK(!stage.stepped, "unscale_() is being called after step().");
  BRASA_CHECK(!stage.found_inf.defined(),
              "unscale_() has already been called on this optimizer since the last update().");
  NoGradGuard no_grad;
  Tensor inverse;
  std::vector<Tensor> infinite;
  for (optim::OptimizerParamGroup& group : optimizer.param_groups())
    for (Tensor& p : group.params()) {
      Tensor g = p.grad();
      if (!g.defined()) continue;
      BRASA_CHECK(g.scalar_type() != kFloat16, "Attempting to unscale FP16 gradients.");
      live_on(g.device());
      if (!inverse.defined()) inverse = scale_.to(kFloat64).reciprocal().to(kFloat32);
      infinite.push_back(on(scale_.device(), g.isfinite().logical_not().any()));
      g.mul_(on(g.device(), inverse));
    }
  BRASA_CHECK(!infinite.empty(), "GradScaler: no parameter of this optimizer has a gradient");
  stage.found_inf = stack(infinite).any().to(kFloat32);
}

namespace {

// Parameters and what the optimizer keeps for each, with their values.
class Before {
 public:
  explicit Before(optim::Optimizer& optimizer) : optimizer_(optimizer) {
    each([](const Tensor&) {});
    if (all_) each([&](const Tensor& t) { values_.emplace(place(t), Value{t, t.clone()}); });
  }
  /// False if the optimizer counts in numbers, which no value can be chosen for when a recording runs, or if a parameter has no state yet.
  bool all() const { return all_; }
  /// Gives them back where `undo` is true; what was made since then becomes zero.
  void restore_where(const Tensor& undo) {
    std::set<Place> done;  // some have a tensor in common
    each([&](const Tensor& t) {
      if (!done.insert(place(t)).second) return;
      auto it = values_.find(place(t));
      t.copy_(where(on(t.device(), undo), it == values_.end() ? zeros_like(t) : it->second.before, t));
    });
  }

 private:
  // f for each tensor of a state; a number makes `all` false.
  class Tensors final : public optim::FieldVisitor {
   public:
    Tensors(const std::function<void(const Tensor&)>& f, bool& all) : f_(f), all_(all) {}
    void tensor(const std::string&, Tensor& t, bool) override {
      if (t.defined()) f_(t);
    }
    void number(const std::string&, double&) override { all_ = false; }
    void number(const std::string&, std::optional<double>&) override { all_ = false; }

   private:
    const std::function<void(const Tensor&)>& f_;
    bool& all_;
  };
  using Place = std::pair<const Storage*, int64_t>;
  static Place place(const Tensor& t) { return {impl_of(t)->storage.get(), impl_of(t)->offset}; }
  void each(const std::function<void(const Tensor&)>& f) {
    for (optim::OptimizerParamGroup& group : optimizer_.param_groups())
      for (Tensor& p : group.params())
        if (p.grad().defined()) {
          f(p);
          all_ = all_ && optimizer_.state().contains(p.impl());
        }
    Tensors tensors(f, all_);
    for (auto& [parameter, state] : optimizer_.state()) all_ = state->visit(tensors) && all_;
  }
  optim::Optimizer& optimizer_;
  bool all_ = true;
  struct Value {
    Tensor alive;  // so that no other memory gets its place
    Tensor before;
  };
  std::map<Place, Value> values_;
};

}  // namespace

bool GradScaler::step(optim::Optimizer& optimizer) {
  if (!is_enabled()) {
    optimizer.step();
    return true;
  }
  BRASA_CHECK(!stages_[&optimizer].stepped, "step() has already been called since the last update().");
  if (!stages_[&optimizer].found_inf.defined()) unscale_(optimizer);
  Stage& stage = stages_[&optimizer];
  stage.stepped = true;
  bool waits = !Recorder::current() && impl_of(stage.found_inf)->device().on_host();
  if (!waits && begun_.count(&optimizer)) {
    NoGradGuard no_grad;
    Before before(optimizer);
    if (before.all()) {
      optimizer.step();
      before.restore_where(stage.found_inf.ne(0));
      return true;
    }
  }
  begun_.insert(&optimizer);
  bool good = stage.found_inf.item<double>() == 0;
  if (good) optimizer.step();
  return good;
}

void GradScaler::set_scale(double scale) {
  NoGradGuard no_grad;
  scale_.fill_(scale);
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!is_enabled()) return;
  if (new_scale) {
    set_scale(*new_scale);
  } else {
    NoGradGuard no_grad;
    std::vector<Tensor> found;
    for (auto& [optimizer, stage] : stages_)
      if (stage.found_inf.defined()) found.push_back(stage.found_inf);
    BRASA_CHECK(!found.empty(), "No inf checks were recorded prior to update.");
    Tensor infinite = stack(found).any();
    Tensor tracked = where(infinite, zeros_like(growth_tracker_), growth_tracker_ + 1);
    Tensor due = tracked.eq(options_.growth_interval()), grown = scale_ * options_.growth_factor();
    // An infinite scale would end training.
    grown = where(due.logical_and(grown.isfinite()), grown, scale_);
    scale_.copy_(where(infinite, scale_ * options_.backoff_factor(), grown));
    growth_tracker_.copy_(where(due, zeros_like(tracked), tracked));
  }
  stages_.clear();
}

double GradScaler::get_scale() const { return is_enabled() ? scale_.item<double>() : 1.0; }
int64_t GradScaler::get_growth_tracker() const { return is_enabled() ? growth_tracker_.item<int64_t>() : 0; }

namespace {
Tensor number(double value) { return full({}, value, kFloat64); }
double number(serialize::InputArchive& archive, const char* key) {
  Tensor t;
  archive.read(key, t);
  return t.item<double>();
}
}  // namespace

void GradScaler::save(serialize::OutputArchive& archive) const {
  if (!is_enabled()) return;
  archive.write("scale", number(get_scale()));
  archive.write("growth_factor", number(get_growth_factor()));
  archive.write("backoff_factor", number(get_backoff_factor()));
  archive.write("growth_interval", number(static_cast<double>(get_growth_interval())));
  archive.write("_growth_tracker", number(static_cast<double>(get_growth_tracker())));
}
void GradScaler::load(serialize::InputArchive& archive) {
  if (!is_enabled()) return;
  set_scale(number(archive, "scale"));
  set_growth_factor(number(archive, "growth_factor"));
  set_backoff_factor(number(archive, "backoff_factor"));
  set_growth_interval(static_cast<int64_t>(number(archive, "growth_interval")));
  NoGradGuard no_grad;
  growth_tracker_.fill_(static_cast<int64_t>(number(archive, "_growth_tracker")));
}

}  // namespace brasa::amp
