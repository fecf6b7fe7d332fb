#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <brasa/autograd.h>
#include <brasa/nn/module.h>
#include <brasa/nn/pimpl.h>

/// Averages of a model's weights over training, as in Python's torch.optim.swa_utils:
///
///     optim::swa_utils::AveragedModel averaged(model);
///     for (…) { train(model); averaged.update_parameters(*model); }
///     optim::swa_utils::update_bn(batches, averaged.module(), [&](const Tensor& x) { return averaged->forward(x); });
///
/// The schedule that goes with it is lr_scheduler::SWALR.
namespace brasa::optim::swa_utils {

/// From an average, the present value and the number of values in the average, the next average.
using AveragingFunction = std::function<Tensor(const Tensor& averaged, const Tensor& current, int64_t count)>;
/// Of all values, each with the same weight (Izmailov et al. 2018).
BRASA_API AveragingFunction mean();
/// decay · averaged + (1 - decay) · current. brasa::Error unless decay is in [0, 1].
BRASA_API AveragingFunction exponential(double decay = 0.999);

namespace detail {
/// Gives `averaged` the next average of every parameter (and buffer); the first time, and buffers that are not averaged, what `current`
/// has. brasa::Error if the modules' tensors differ in number or sizes.
BRASA_API void update(nn::Module& averaged, const nn::Module& current, const AveragingFunction& average, int64_t count,
                      bool use_buffers);
BRASA_API std::vector<std::pair<std::shared_ptr<nn::Module>, std::optional<double>>> reset_batch_norms(
    nn::Module& model);
BRASA_API void restore_momenta(
    const std::vector<std::pair<std::shared_ptr<nn::Module>, std::optional<double>>>& before);
}  // namespace detail

/// A copy of a module, whose parameters are an average of the module's over the calls of update_parameters.
template <class M>
class AveragedModel {
 public:
  explicit AveragedModel(const std::shared_ptr<M>& model, AveragingFunction average = mean(), bool use_buffers = false)
      : module_(std::dynamic_pointer_cast<M>(model->clone())),
        average_(std::move(average)),
        use_buffers_(use_buffers) {}
  explicit AveragedModel(const nn::ModuleHolder<M>& model, AveragingFunction average = mean(), bool use_buffers = false)
      : AveragedModel(model.ptr(), std::move(average), use_buffers) {}

  void update_parameters(const nn::Module& model) {
    detail::update(*module_, model, average_, n_averaged_, use_buffers_);
    ++n_averaged_;
  }
  int64_t n_averaged() const { return n_averaged_; }
  const std::shared_ptr<M>& module() const { return module_; }
  M* operator->() const { return module_.get(); }
  M& operator*() const { return *module_; }

 private:
  std::shared_ptr<M> module_;
  AveragingFunction average_;
  bool use_buffers_;
  int64_t n_averaged_ = 0;
};
template <class M>
AveragedModel(const std::shared_ptr<M>&) -> AveragedModel<M>;
template <class M>
AveragedModel(const std::shared_ptr<M>&, AveragingFunction) -> AveragedModel<M>;

/// Computes the running statistics of the model's batch norms anew, over one pass of `forward` over the batches.
template <class Batches, class Forward>
void update_bn(Batches&& batches, nn::Module& model, Forward&& forward) {
  auto before = detail::reset_batch_norms(model);
  if (before.empty()) return;
  NoGradGuard no_grad;
  bool was_training = model.is_training();
  model.train();
  for (auto&& batch : batches) forward(batch);
  detail::restore_momenta(before);
  model.train(was_training);
}

}  // namespace brasa::optim::swa_utils
