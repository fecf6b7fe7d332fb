#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "runtime/device.h"

namespace brasa::runtime::emu {

/// Work that runs when somebody waits for it: each stream's in order, streams in an order that is drawn by lot.
class Queue {
 public:
  Queue() { streams_[kDefaultStream]; }
  void add(Stream stream, std::function<void()> work);
  Stream make_stream();
  /// Runs what it still has.
  void destroy_stream(Stream stream);
  Event record(Stream stream);
  void wait(Stream stream, Event event);
  bool done(Event event);
  bool idle(Stream stream);
  /// A little goes on: for programs that ask again and again.
  void go_on();
  /// Runs work until this stream, this event, or everything is done.
  void finish(Stream stream);
  void finish_event(Event event);
  void finish();
  /// Forgets all work.
  void clear();
  void seed(uint64_t seed);
  size_t waiting();

 private:
  struct Task {
    std::function<void()> work;  // null: the task is `records` or `waits_for`
    Event records = 0, waits_for = 0;
  };
  bool ready(const Task& t) const { return t.waits_for == 0 || !pending_.count(t.waits_for); }
  bool run_one();
  template <class Done>
  void run_until(Done done);

  std::recursive_mutex mutex_;
  std::map<Stream, std::deque<Task>> streams_;
  std::set<Event> pending_;  // recorded, not reached
  Stream next_stream_ = 1;
  Event next_event_ = 1;
  std::mt19937_64 lot_{1};
};

}  // namespace brasa::runtime::emu
