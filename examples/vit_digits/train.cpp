#include "train.h"

#include <algorithm>
#include <chrono>

#include <brasa/brasa.h>
#include <brasa/nn.h>
#include <brasa/optim.h>

#include "models/vit.h"

namespace demo {
namespace {

using namespace brasa;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double accuracy(models::ViT& model, const Digits& digits, Device device) {
  NoGradGuard no_grad;
  model->eval();
  return model(digits.images().to(device)).argmax(1).eq(digits.labels().to(device)).to(kFloat32).mean().item<double>();
}

}  // namespace

double Result::median_ms() const {
  std::vector<double> sorted(step_ms.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(step_ms.size() / 2, 22)),
                             step_ms.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : sorted[sorted.size() / 2];
}

Result train(const Digits& digits, const Digits& held_out, bool compiled, const Settings& settings,
             const std::function<void(const Progress&)>& report, std::optional<int> max_steps) {
  manual_seed(settings.seed);
  const Device device(settings.device);
  models::ViT model(models::vit_of_digits());
  model->to(device);
  optim::Adam optimizer(model->parameters(), optim::AdamOptions(settings.lr));
  auto loader = data::make_data_loader(
      Digits(digits).map(data::transforms::Stack<>()),
      data::DataLoaderOptions(static_cast<size_t>(settings.batch_size)).workers(settings.workers).drop_last(true));

  auto step = [&](const Tensor& images, const Tensor& labels) {
    optimizer.zero_grad();
    Tensor loss = nn::functional::cross_entropy(model(images), labels);
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  auto fast = compile(step, {.fullgraph = true, .backend = settings.backend});

  Result result;
  for (const Tensor& p : model->parameters()) result.parameters += p.numel();
  int steps = static_cast<int>(*digits.size()) / static_cast<int>(settings.batch_size);
  for (int epoch = 0; epoch < settings.epochs; ++epoch) {
    int in_epoch = 0;
    Clock::time_point epoch_start = Clock::now();
    for (auto& batch : *loader) {
      Clock::time_point start = Clock::now();
      Tensor images = batch.data.to(device), labels = batch.target.to(device);
      double loss = (compiled ? fast(images, labels) : step(images, labels)).item<double>();
      double seconds = seconds_since(start);
      if (result.losses.empty()) result.first_s = seconds;
      result.losses.push_back(loss);
      result.step_ms.push_back(1e3 * seconds);
      ++in_epoch;
      report({epoch, settings.epochs, in_epoch, steps, loss,
              static_cast<double>(in_epoch * settings.batch_size) / seconds_since(epoch_start)});
      if (max_steps && static_cast<int>(result.losses.size()) >= *max_steps) return result;
    }
  }
  result.accuracy = accuracy(model, held_out, device);
  if (compiled) result.explanation = fast.explain();
  return result;
}

}  // namespace demo
