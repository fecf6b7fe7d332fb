#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include <brasa/progress.h>

#include "runtime/device.h"
#include "runtime/measuring.h"
#include "support/mutex.h"

namespace brasa::compiler {

/// The ways of a graph's library calls, which are measured in its first run: the choices are kept in the disk cache for each model of device, and
/// a bar shows how far that is.
class MeasuredWays final : public runtime::Measuring {
 public:
  /// `seconds` after the first call what is left keeps its first way.
  MeasuredWays(const runtime::Device& device, double seconds) : device_(device), seconds_(seconds) {}

  /// One more call that will run.
  void expect() { ++calls_; }
  /// A call's first run begins.
  void begin(const std::string& what);

  std::optional<size_t> kept(const std::string& key) override;
  void keep(const std::string& key, size_t way) override;
  bool has_time() override;

 private:
  using Clock = std::chrono::steady_clock;
  std::string name_of(const std::string& key) const;

  const runtime::Device& device_;
  double seconds_;
  std::atomic<size_t> calls_{0};
  Mutex mutex_;
  size_t begun_ = 0;
  Clock::time_point end_;
  std::unique_ptr<ProgressBar> progress_;
};

}  // namespace brasa::compiler
