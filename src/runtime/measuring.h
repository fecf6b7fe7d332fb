#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace brasa::runtime {

/// How calls of libraries measure the ways that they know. Thread-safe.
class Measuring {
 public:
  virtual ~Measuring() = default;
  /// What was chosen before on such a device; `key` says of what, and from which library's ways.
  virtual std::optional<size_t> kept(const std::string& key) = 0;
  virtual void keep(const std::string& key, size_t way) = 0;
  /// Whether there is time left; where there is none the first way stays.
  virtual bool has_time() = 0;
};

}  // namespace brasa::runtime
