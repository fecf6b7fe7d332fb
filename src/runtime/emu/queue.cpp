#include "runtime/emu/queue.h"

#include "support/error.h"

namespace brasa::runtime::emu {

namespace {
// What a program that never waits may pile up: work may as well run early.
constexpr size_t kMost = 4096;
}  // namespace

void Queue::add(Stream stream, std::function<void()> work) {
  std::lock_guard lock(mutex_);
  auto it = streams_.find(stream);
  BRASA_CHECK(it != streams_.end(), "device 'emu': stream ", stream, " is not there");
  it->second.push_back({std::move(work)});
  while (it->second.size() > kMost && run_one()) {
  }
}

Stream Queue::make_stream() {
  std::lock_guard lock(mutex_);
  streams_[next_stream_];
  return next_stream_++;
}

void Queue::destroy_stream(Stream stream) {
  std::lock_guard lock(mutex_);
  finish(stream);
  if (stream != kDefaultStream) streams_.erase(stream);
}

Event Queue::record(Stream stream) {
  std::lock_guard lock(mutex_);
  Event e = next_event_++;
  pending_.insert(e);
  streams_.at(stream).push_back({nullptr, e, 0});
  return e;
}

void Queue::wait(Stream stream, Event event) {
  std::lock_guard lock(mutex_);
  if (pending_.count(event)) streams_.at(stream).push_back({nullptr, 0, event});
}

bool Queue::done(Event event) {
  std::lock_guard lock(mutex_);
  return !pending_.count(event);
}

bool Queue::idle(Stream stream) {
  std::lock_guard lock(mutex_);
  auto it = streams_.find(stream);
  return it == streams_.end() || it->second.empty();
}

void Queue::go_on() {
  std::lock_guard lock(mutex_);
  run_one();
}

// One task of a stream that can go on; false if there is none.
bool Queue::run_one() {
  std::deque<Task>* chosen = nullptr;
  uint64_t candidates = 0;
  for (auto& [id, tasks] : streams_)
    if (!tasks.empty() && ready(tasks.front()) && lot_() % ++candidates == 0) chosen = &tasks;
  if (!chosen) return false;
  Task t = std::move(chosen->front());
  chosen->pop_front();
  if (t.work) t.work();
  if (t.records) pending_.erase(t.records);
  return true;
}

template <class Done>
void Queue::run_until(Done done) {
  std::lock_guard lock(mutex_);
  while (!done()) BRASA_ASSERT(run_one(), "the streams of an emulated GPU wait for each other");
}

void Queue::finish(Stream stream) {
  run_until([&] {
    auto it = streams_.find(stream);
    return it == streams_.end() || it->second.empty();
  });
}
void Queue::finish_event(Event event) {
  run_until([&] { return !pending_.count(event); });
}
void Queue::finish() {
  run_until([&] {
    for (auto& [id, tasks] : streams_)
      if (!tasks.empty()) return false;
    return true;
  });
}

void Queue::clear() {
  std::lock_guard lock(mutex_);
  for (auto& [id, tasks] : streams_) tasks.clear();
  pending_.clear();
}

void Queue::seed(uint64_t seed) {
  std::lock_guard lock(mutex_);
  lot_.seed(seed);
}

size_t Queue::waiting() {
  std::lock_guard lock(mutex_);
  size_t n = 0;
  for (auto& [id, tasks] : streams_) n += tasks.size();
  return n;
}

}  // namespace brasa::runtime::emu
