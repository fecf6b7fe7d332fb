#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"

// What <brasa/trace.h> promises.
namespace brasa::compiler {

bool tracing();

/// The steps of one run, in order; their times are added up when it ends.
class TracedRun {
 public:
  TracedRun(runtime::Device& device, runtime::Stream stream);
  ~TracedRun();
  TracedRun(const TracedRun&) = delete;
  /// The work since the last step.
  void step(const std::string& what, int64_t bytes, double flops);

 private:
  struct Step {
    std::string what;
    int64_t bytes;
    double flops;
    std::unique_ptr<runtime::TimeMark> end;
  };
  runtime::Device& device_;
  runtime::Stream stream_;
  std::unique_ptr<runtime::TimeMark> start_;
  std::vector<Step> steps_;
};

}  // namespace brasa::compiler
