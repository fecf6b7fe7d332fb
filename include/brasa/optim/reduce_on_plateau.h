#pragma once

#include <cstdint>
#include <vector>

#include <brasa/optim/optimizer.h>

namespace brasa::optim {

/// lr · factor once a metric has not become better for more than `patience` steps.
class BRASA_API ReduceLROnPlateauScheduler {
 public:
  enum SchedulerMode { min, max };  ///< better is less, or more
  enum ThresholdMode { rel, abs };  ///< the least change that counts: a part of the best metric, or a number

  /// `min_lrs`: one for all groups, one a group, or none for 0. A change of the rate by `eps` or less is not made.
  /// brasa::Error for a factor of 1 or more.
  explicit ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, double factor = 0.1,
                                      int64_t patience = 10, double threshold = 1e-4,
                                      ThresholdMode threshold_mode = rel, int64_t cooldown = 0,
                                      std::vector<double> min_lrs = {}, double eps = 1e-8, bool verbose = false);
  virtual ~ReduceLROnPlateauScheduler();
  virtual void step(double metric);
  /// Forgets the best metric and the counts.
  void reset();

  void save(serialize::OutputArchive& archive) const;
  void load(serialize::InputArchive& archive);

 private:
  bool is_better(double metric) const;
  void reduce();

  Optimizer& optimizer_;
  SchedulerMode mode_;
  double factor_;
  int64_t patience_;
  double threshold_;
  ThresholdMode threshold_mode_;
  int64_t cooldown_;
  std::vector<double> min_lrs_;
  double eps_;
  bool verbose_;
  double best_ = 0;
  int64_t bad_steps_ = 0, cooldown_left_ = 0, last_epoch_ = 0;
};

}  // namespace brasa::optim
