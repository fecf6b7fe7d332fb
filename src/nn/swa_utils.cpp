#include <brasa/nn/swa_utils.h>

#include <brasa/brasa.h>
#include <brasa/nn.h>

#include "support/error.h"

namespace brasa::optim::swa_utils {

AveragingFunction mean() {
  return [](const Tensor& averaged, const Tensor& current, int64_t count) {
    return averaged + (current - averaged) / static_cast<double>(count + 1);
  };
}

AveragingFunction exponential(double decay) {
  BRASA_CHECK(decay >= 0 && decay <= 1, "Invalid decay value ", decay,
              " provided. Please provide a value in [0,1] range.");
  return [decay](const Tensor& averaged, const Tensor& current, int64_t) { return averaged.lerp(current, 1 - decay); };
}

namespace detail {

void update(nn::Module& averaged, const nn::Module& current, const AveragingFunction& average, int64_t count,
            bool use_buffers) {
  NoGradGuard no_grad;
  auto take = [&](const std::vector<Tensor>& to, const std::vector<Tensor>& from, bool averages) {
    BRASA_CHECK(to.size() == from.size(), "AveragedModel: the averaged module has ", to.size(),
                " tensors where this one has ", from.size());
    for (size_t i = 0; i < to.size(); ++i) {
      BRASA_CHECK(to[i].sizes() == from[i].sizes(), "AveragedModel: a tensor of sizes ", to[i].sizes(),
                  " cannot be averaged with one of sizes ", from[i].sizes());
      bool first = count == 0 || !averages || !is_floating(to[i].scalar_type());
      to[i].copy_(first ? from[i] : average(to[i], from[i], count));
    }
  };
  take(averaged.parameters(), current.parameters(), true);
  take(averaged.buffers(), current.buffers(), use_buffers);
}

namespace {

// f(norm) if the module is a batch norm of D dimensions.
template <class Norm, class F>
bool with(nn::Module& module, const F& f) {
  auto* norm = module.as<Norm>();
  if (norm) f(*norm);
  return norm != nullptr;
}
template <class F>
bool with_batch_norm(nn::Module& module, const F& f) {
  return with<nn::BatchNorm1dImpl>(module, f) || with<nn::BatchNorm2dImpl>(module, f) ||
         with<nn::BatchNorm3dImpl>(module, f);
}

}  // namespace

std::vector<std::pair<std::shared_ptr<nn::Module>, std::optional<double>>> reset_batch_norms(nn::Module& model) {
  std::vector<std::pair<std::shared_ptr<nn::Module>, std::optional<double>>> before;
  for (const std::shared_ptr<nn::Module>& module : model.modules())
    with_batch_norm(*module, [&](auto& norm) {
      norm.reset_running_stats();
      before.push_back({module, norm.options.momentum()});
      norm.options.momentum(std::nullopt);  // the mean over all batches
    });
  return before;
}

void restore_momenta(const std::vector<std::pair<std::shared_ptr<nn::Module>, std::optional<double>>>& before) {
  for (auto& [module, momentum] : before)
    with_batch_norm(*module, [&, m = momentum](auto& norm) { norm.options.momentum(m); });
}

}  // namespace detail
}  // namespace brasa::optim::swa_utils
