#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brasa::fuzz {

/// A reader of bytes that somebody else wrote. `run` gives them to it and says whether they were read, or a brasa::Error; it throws
/// std::logic_error with a reason for whatever else goes wrong.
struct Target {
  const char* name;
  bool (*run)(std::string_view bytes);
  std::vector<std::string> (*seeds)();  // most of which it reads
  bool text;
  size_t times = 100;  // bytes of memory that a byte may take
};
std::span<const Target> targets();
/// std::invalid_argument if there is none.
const Target& target(std::string_view name);

/// One of the seeds with a few places changed; the same for the same numbers.
std::string mutated(const Target& target, uint32_t seed, uint32_t number);

struct Outcome {
  double seconds = 0;
  size_t peak_bytes = 0;  // that operator new gave at once
  std::string failure;    // empty: none
  bool read = false;
};
/// With the limits of docs/reliability.md: a second, and the target's times as many bytes and a megabyte.
Outcome tried(const Target& target, std::string_view bytes);

}  // namespace brasa::fuzz
