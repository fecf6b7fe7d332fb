#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <brasa/export.h>

namespace brasa {

/// One thing that Brasa can use, and whether this machine has it. `brasa doctor` shows all of them.
struct Finding {
  enum class State : uint8_t { Found, Missing, Unusable };
  std::string area;  ///< "cpu", "kernels", "cuda"
  std::string name;  ///< "cuBLASLt"
  State state = State::Found;
  std::string value;   ///< a version, a size, or what is wrong
  std::string where;   ///< its file or folder, and by which rule it was found
  std::string advice;  ///< what to do where it is not there or will not do; else empty
};

/// Looks at everything, which loads the libraries.
BRASA_API std::vector<Finding> examine();

}  // namespace brasa
