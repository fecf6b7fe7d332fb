#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace brasa::autograd {

/// The time that backward passes of the thread that made it spend in the nodes numbered from `first` to before `end`.
class Meter {
 public:
  static std::shared_ptr<Meter> make(uint64_t first, uint64_t end);

  /// Whether a pass went through one of them. Of that thread.
  bool passed() const { return passed_; }
  double seconds() const { return seconds_; }

 private:
  friend class Metering;
  Meter(uint64_t first, uint64_t end) : first_(first), end_(end) {}
  bool holds(uint64_t number) const { return number - first_ < end_ - first_; }

  uint64_t first_, end_;
  bool passed_ = false;
  double seconds_ = 0;
};

/// One backward pass, as the thread's meters see it. Of passes inside of passes the outermost counts.
class Metering {
 public:
  explicit Metering(bool outermost);
  ~Metering() { go_to(nullptr); }
  Metering(const Metering&) = delete;
  Metering& operator=(const Metering&) = delete;

  /// The first node follows. The time until now is that of the first meter.
  void prepared();
  /// The node of this number is next.
  void next(uint64_t number) {
    if (!meters_.empty()) [[unlikely]]
      find(number);
  }

 private:
  void find(uint64_t number);
  void go_to(Meter* meter);

  std::vector<std::shared_ptr<Meter>> meters_;
  Meter* now_ = nullptr;
  double since_ = 0, preparation_ = 0;
};

}  // namespace brasa::autograd
