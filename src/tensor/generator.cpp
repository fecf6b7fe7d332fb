#include <brasa/generator.h>

#include <random>

#include "support/lazy.h"
#include "support/mutex.h"

namespace brasa {

struct Generator::State {
  Mutex mutex;
  uint64_t seed = 0, offset = 0;
};

Generator::Generator(uint64_t seed) : state_(std::make_shared<State>()) { state_->seed = seed; }

void Generator::set_current_seed(uint64_t seed) {
  std::lock_guard lock(state_->mutex);
  state_->seed = seed;
  state_->offset = 0;
}
uint64_t Generator::current_seed() const {
  std::lock_guard lock(state_->mutex);
  return state_->seed;
}
uint64_t Generator::seed() {
  std::random_device device;
  uint64_t s = static_cast<uint64_t>(device()) << 32 | device();
  set_current_seed(s);
  return s;
}
uint64_t Generator::offset() const {
  std::lock_guard lock(state_->mutex);
  return state_->offset;
}
void Generator::set_offset(uint64_t offset) {
  std::lock_guard lock(state_->mutex);
  state_->offset = offset;
}
Generator::Key Generator::take(uint64_t count) {
  std::lock_guard lock(state_->mutex);
  Key k{static_cast<int64_t>(state_->seed), static_cast<int64_t>(state_->offset)};
  state_->offset += (count + 63) / 64 * 64;  // Philox makes four numbers at a time, for 16 lanes
  return k;
}

Generator& default_generator() {
  static constinit Lazy<Generator> g;
  return *g;
}
void manual_seed(uint64_t seed) { default_generator().set_current_seed(seed); }
void seed() { default_generator().seed(); }

}  // namespace brasa
