#include <brasa/data/prefetcher.h>

#include <map>
#include <thread>
#include <vector>

#include <brasa/error.h>

namespace brasa::data {

WorkerException::WorkerException(std::exception_ptr original)
    : message("Caught exception in DataLoader worker thread."), original_exception(std::move(original)) {
  try {
    std::rethrow_exception(original_exception);
  } catch (const std::exception& e) {
    message += std::string(" Original message: ") + e.what();
  } catch (...) {
  }
}
WorkerException::~WorkerException() = default;

namespace detail {
namespace {

struct NumberedJob {
  size_t number;
  Workers::Job job;
};
struct Outcome {
  size_t number;
  std::shared_ptr<void> result;
  std::exception_ptr error;
};

// Until a job that is none.
void work(size_t worker, Channel& jobs, Channel& outcomes) {
  while (auto next = std::static_pointer_cast<NumberedJob>(jobs.pop())) {
    auto outcome = std::make_shared<Outcome>(Outcome{next->number, nullptr, nullptr});
    try {
      outcome->result = next->job(worker);
    } catch (...) {
      outcome->error = std::current_exception();
    }
    // What the job holds must not outlive the result.
    next.reset();
    outcomes.push(std::move(outcome));
  }
}

}  // namespace

struct Workers::Impl {
  bool ordered;
  Channel jobs, outcomes;
  std::map<size_t, std::shared_ptr<Outcome>> early;  // ready before their turn
  size_t pushed = 0, popped = 0;
  bool joined = false;
  std::vector<std::thread> threads;
};

Workers::Workers(size_t count, bool ordered) : impl_(std::make_unique<Impl>()) {
  impl_->ordered = ordered;
  for (size_t i = 0; i < count; ++i)
    impl_->threads.emplace_back([i, impl = impl_.get()] { work(i, impl->jobs, impl->outcomes); });
}
Workers::~Workers() { join(); }

size_t Workers::in_flight() const { return impl_->pushed - impl_->popped; }

void Workers::restart() {
  if (impl_->joined) throw Error("DataLoader: it has been joined and cannot be used again");
  impl_->pushed = impl_->popped = 0;
}

void Workers::push(Job job) {
  impl_->jobs.push(std::make_shared<NumberedJob>(NumberedJob{impl_->pushed++, std::move(job)}));
}

std::shared_ptr<void> Workers::pop(std::optional<std::chrono::milliseconds> timeout) {
  std::shared_ptr<Outcome> outcome;
  while (!outcome) {
    auto turn = impl_->early.find(impl_->popped);
    if (turn != impl_->early.end()) {
      outcome = std::move(turn->second);
      impl_->early.erase(turn);
    } else {
      auto ready = std::static_pointer_cast<Outcome>(impl_->outcomes.pop(timeout));
      if (!impl_->ordered || ready->number == impl_->popped)
        outcome = std::move(ready);
      else
        impl_->early.emplace(ready->number, std::move(ready));
    }
  }
  ++impl_->popped;
  if (outcome->error) throw WorkerException(outcome->error);
  return std::move(outcome->result);
}

void Workers::join() {
  if (std::exchange(impl_->joined, true)) return;
  impl_->jobs.clear();
  for (size_t i = 0; i < impl_->threads.size(); ++i) impl_->jobs.push(nullptr);
  for (std::thread& t : impl_->threads) t.join();
  impl_->pushed = impl_->popped = 0;
  impl_->outcomes.clear();
  impl_->early.clear();
}

}  // namespace detail
}  // namespace brasa::data
