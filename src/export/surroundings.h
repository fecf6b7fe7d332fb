#pragma once

#include <utility>
#include <vector>

#include <brasa/generator.h>
#include <brasa/tensor.h>

namespace brasa::exporting {

/// What a function meets when it is called, which captures leave as it was: the default stream of random numbers, and gradients. Those
/// that a call leaves behind are zeros for the next one: so a call that adds to them reads them.
class Surroundings {
 public:
  Surroundings();
  ~Surroundings();
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

  /// The stream begins again.
  void begin_call();
  void left_gradient(const Tensor& leaf);
  /// What it was given for the next call; undefined if nothing was.
  Tensor zeros_of(const Tensor& leaf) const;
  /// int64 [seed, offset] of the stream: stands for the program's own.
  const Tensor& random() const { return random_; }
  Generator::Key key() const { return key_; }

 private:
  Generator::Key key_;
  Tensor random_;
  std::vector<std::pair<Tensor, Tensor>> leaves_;  // with those zeros
};

}  // namespace brasa::exporting
