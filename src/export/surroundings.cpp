#include "export/surroundings.h"

#include <brasa/autograd.h>
#include <brasa/brasa.h>

namespace brasa::exporting {

Surroundings::Surroundings()
    : key_{static_cast<int64_t>(default_generator().current_seed()),
           static_cast<int64_t>(default_generator().offset())},
      random_(empty({2}, TensorOptions(kInt64).device(Device(kCPU)))) {
  random_.data_ptr<int64_t>()[0] = key_.seed;
  random_.data_ptr<int64_t>()[1] = key_.offset;
}

Surroundings::~Surroundings() {
  begin_call();
  for (const auto& [leaf, zeros] : leaves_) leaf.mutable_grad().reset();
}

void Surroundings::begin_call() {
  default_generator().set_current_seed(static_cast<uint64_t>(key_.seed));
  default_generator().set_offset(static_cast<uint64_t>(key_.offset));
}

void Surroundings::left_gradient(const Tensor& leaf) {
  NoGradGuard no_grad;
  Tensor zeros = zeros_of(leaf);
  if (!zeros.defined()) leaves_.emplace_back(leaf, zeros = zeros_like(leaf));
  leaf.mutable_grad() = zeros;
}

Tensor Surroundings::zeros_of(const Tensor& leaf) const {
  for (const auto& [known, zeros] : leaves_)
    if (known.is_same(leaf)) return zeros;
  return {};
}

}  // namespace brasa::exporting
