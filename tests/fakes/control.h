#pragma once

#include <map>
#include <mutex>
#include <string>

// What tests see of a fake library and set in it: one object in each, found by the symbol `brasa_fake`.
namespace brasa::fakes {

class Control {
 public:
  virtual ~Control() = default;
  /// How often this function was called, and its n-th call from now on fails with `status`.
  virtual int calls(const std::string& function) = 0;
  virtual void fail(const std::string& function, int n, int status) = 0;
};

class Log final : public Control {
 public:
  int calls(const std::string& function) override {
    std::lock_guard lock(mutex_);
    return calls_[function];
  }
  void fail(const std::string& function, int n, int status) override {
    std::lock_guard lock(mutex_);
    failing_[function] = {calls_[function] + n, status};
  }
  /// Notes a call; what it is to return, 0 for success.
  int note(const char* function) {
    std::lock_guard lock(mutex_);
    int call = ++calls_[function];
    auto it = failing_.find(function);
    return it != failing_.end() && it->second.call == call ? it->second.status : 0;
  }

 private:
  struct Failure {
    int call, status;
  };
  std::mutex mutex_;
  std::map<std::string, int> calls_;
  std::map<std::string, Failure> failing_;
};

}  // namespace brasa::fakes
