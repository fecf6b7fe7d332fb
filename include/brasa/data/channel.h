#pragma once

#include <cstddef>
#include <memory>
#include <optional>
// The durations alone: all of <chrono> doubles what this header takes to compile.
#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif

#include <brasa/export.h>

namespace brasa::data::detail {

/// Values from some threads to others, in the order of push(), of a type that only their users know.
class BRASA_API Channel {
 public:
  Channel();
  ~Channel();
  void push(std::shared_ptr<void> value);
  /// Waits for a value, at most for `timeout`, then brasa::Error.
  std::shared_ptr<void> pop(std::optional<std::chrono::milliseconds> timeout = {});
  /// Drops what waits, and says how many there were.
  size_t clear();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace brasa::data::detail
