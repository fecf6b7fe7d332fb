#include "tensor/autograd/meter.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace brasa::autograd {
namespace {

thread_local std::vector<std::weak_ptr<Meter>> meters;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

std::shared_ptr<Meter> Meter::make(uint64_t first, uint64_t end) {
  std::shared_ptr<Meter> made(new Meter(first, end));
  std::erase_if(meters, [](const std::weak_ptr<Meter>& m) { return m.expired(); });
  meters.push_back(made);
  return made;
}

Metering::Metering(bool outermost) {
  if (meters.empty() || !outermost) return;
  for (const std::weak_ptr<Meter>& m : meters)
    if (auto held = m.lock()) meters_.push_back(std::move(held));
  since_ = now();
}

void Metering::prepared() {
  if (!meters_.empty()) preparation_ = now() - since_;
}

void Metering::find(uint64_t number) {
  if (now_ && now_->holds(number)) return;
  auto it = std::find_if(meters_.begin(), meters_.end(), [&](const auto& m) { return m->holds(number); });
  go_to(it == meters_.end() ? nullptr : it->get());
}

void Metering::go_to(Meter* meter) {
  if (meter == now_) return;
  double time = now();
  if (now_) now_->seconds_ += time - since_;
  now_ = meter;
  since_ = time;
  if (!meter) return;
  meter->passed_ = true;
  meter->seconds_ += std::exchange(preparation_, 0);
}

}  // namespace brasa::autograd
