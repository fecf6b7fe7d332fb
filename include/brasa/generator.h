#pragma once

#include <cstdint>
#include <memory>

#include <brasa/export.h>

namespace brasa {

/// A stream of random numbers: Philox4x32-10 under a 64-bit seed, read from a 64-bit offset onwards. The same seed gives the
/// same numbers on every device and in every mode. A handle: copies share the stream. Thread-safe.
class BRASA_API Generator {
 public:
  struct State;

  /// A stream of its own, seeded with `seed`.
  explicit Generator(uint64_t seed = 67280421310721ull);
  /// Starts the stream again from its beginning.
  void set_current_seed(uint64_t seed);
  uint64_t current_seed() const;
  /// Seeds from the system's entropy and returns the seed.
  uint64_t seed();
  uint64_t offset() const;
  void set_offset(uint64_t offset);
  /// Takes `count` numbers: returns where they begin, {seed, offset}.
  struct Key {
    int64_t seed, offset;
  };
  Key take(uint64_t count);
  bool defined() const { return state_ != nullptr; }
  friend bool operator==(const Generator& a, const Generator& b) { return a.state_ == b.state_; }

 private:
  std::shared_ptr<State> state_;
};

/// The stream that operators use when they are given none.
BRASA_API Generator& default_generator();
/// Seeds it.
BRASA_API void manual_seed(uint64_t seed);
BRASA_API void seed();

}  // namespace brasa
