#include <brasa/amp.h>

#include <cmath>

#include <brasa/autograd.h>
#include <brasa/brasa.h>

#include "support/error.h"
#include "tensor/recorder.h"

namespace brasa::amp {

GradScaler::GradScaler(GradScalerOptions options) : options_(std::move(options)) {
  if (!is_enabled()) return;
  BRASA_CHECK(options_.growth_factor() > 1, "GradScaler: the growth factor must be > 1.0, got ",
              options_.growth_factor());
  BRASA_CHECK(options_.backoff_factor() < 1, "GradScaler: the backoff factor must be < 1.0, got ",
              options_.backoff_factor());
  Recorder::Scope none(nullptr);
  scale_ = full({}, options_.init_scale(), kFloat32);
}
GradScaler::~GradScaler() = default;
GradScaler::GradScaler(GradScaler&&) noexcept = default;
GradScaler& GradScaler::operator=(GradScaler&&) noexcept = default;

Tensor GradScaler::scale(const Tensor& outputs) const { return is_enabled() ? outputs * scale_ : outputs; }
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
  Tensor inverse = scale_.to(kFloat64).reciprocal().to(kFloat32);
  std::vector<Tensor> infinite;
  for (optim::OptimizerParamGroup& group : optimizer.param_groups())
    for (Tensor& p : group.params()) {
      Tensor g = p.grad();
      if (!g.defined()) continue;
      BRASA_CHECK(g.scalar_type() != kFloat16, "Attempting to unscale FP16 gradients.");
      infinite.push_back(g.isfinite().logical_not().any());
      g.mul_(inverse);
    }
  BRASA_CHECK(!infinite.empty(), "GradScaler: no parameter of this optimizer has a gradient");
  stage.found_inf = stack(infinite).any().to(kFloat32);
}

bool GradScaler::step(optim::Optimizer& optimizer) {
  if (!is_enabled()) {
    optimizer.step();
    return true;
  }
  BRASA_CHECK(!stages_[&optimizer].stepped, "step() has already been called since the last update().");
  if (!stages_[&optimizer].found_inf.defined()) unscale_(optimizer);
  Stage& stage = stages_[&optimizer];
  stage.stepped = true;
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
    bool any = false, checked = false;
    for (auto& [optimizer, stage] : stages_) {
      if (!stage.found_inf.defined()) continue;
      checked = true;
      any = any || stage.found_inf.item<double>() != 0;
    }
    BRASA_CHECK(checked, "No inf checks were recorded prior to update.");
    if (any) {
      set_scale(get_scale() * options_.backoff_factor());
      growth_tracker_ = 0;
    } else if (++growth_tracker_ == options_.growth_interval()) {
      // An infinite scale would end training.
      double grown = get_scale() * options_.growth_factor();
      if (std::isfinite(static_cast<float>(grown))) set_scale(grown);
      growth_tracker_ = 0;
    }
  }
  stages_.clear();
}

double GradScaler::get_scale() const { return is_enabled() ? scale_.item<double>() : 1.0; }

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
  archive.write("_growth_tracker", number(static_cast<double>(growth_tracker_)));
}
void GradScaler::load(serialize::InputArchive& archive) {
  if (!is_enabled()) return;
  set_scale(number(archive, "scale"));
  set_growth_factor(number(archive, "growth_factor"));
  set_backoff_factor(number(archive, "backoff_factor"));
  set_growth_interval(static_cast<int64_t>(number(archive, "growth_interval")));
  growth_tracker_ = static_cast<int64_t>(number(archive, "_growth_tracker"));
}

}  // namespace brasa::amp
