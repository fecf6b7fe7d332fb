#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <brasa/compile.h>

#include "digits.h"

namespace demo {

struct Settings {
  int epochs = 20;
  int64_t batch_size = 64;
  double lr = 1e-3;
  size_t workers = 2;
  uint64_t seed = 7;
  std::string backend = "inductor", device = "cpu";
};

/// What the training loop tells while it runs.
struct Progress {
  int epoch, epochs, step, steps;
  double loss, images_per_second;
};

struct Result {
  std::vector<double> losses;   // one a step
  std::vector<double> step_ms;  // wall time of each step, without waiting for data
  double first_s = 0;           // from the first step's call to its loss
  double accuracy = 0;          // on the digits held out
  int64_t parameters = 0;
  brasa::Explanation explanation;  // of the compiled step

  /// Of all steps but those of the first epoch, which compile.
  double median_ms() const;
};

/// Trains a new model; everything that is random comes from the seed. `max_steps` ends early, without a test.
Result train(const Digits& digits, const Digits& held_out, bool compiled, const Settings& settings,
             const std::function<void(const Progress&)>& report, std::optional<int> max_steps = {});

}  // namespace demo
