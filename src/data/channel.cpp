#include <brasa/data/channel.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>

#include <brasa/error.h>

namespace brasa::data::detail {

struct Channel::Impl {
  std::mutex mutex;
  std::condition_variable added;
  std::deque<std::shared_ptr<void>> values;
};

Channel::Channel() : impl_(std::make_unique<Impl>()) {}
Channel::~Channel() = default;

void Channel::push(std::shared_ptr<void> value) {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->values.push_back(std::move(value));
  }
  impl_->added.notify_one();
}

std::shared_ptr<void> Channel::pop(std::optional<std::chrono::milliseconds> timeout) {
  std::unique_lock lock(impl_->mutex);
  auto ready = [this] { return !impl_->values.empty(); };
  if (!timeout)
    impl_->added.wait(lock, ready);
  else if (!impl_->added.wait_for(lock, *timeout, ready))
    throw Error("Timeout in DataLoader queue while waiting for next batch (timeout was " +
                std::to_string(timeout->count()) + " ms)");
  std::shared_ptr<void> value = std::move(impl_->values.front());
  impl_->values.pop_front();
  return value;
}

size_t Channel::clear() {
  std::deque<std::shared_ptr<void>> dropped;
  std::lock_guard lock(impl_->mutex);
  dropped.swap(impl_->values);
  return dropped.size();
}

}  // namespace brasa::data::detail
