#pragma once

#include <string>

namespace brasa {

/// Of a check of values that failed while a graph ran. Every form of a graph carries a check's words alone, so they tell the
/// kind of the error: those of "linalg." are brasa::LinAlgError, "out of range" and "out of bounds" brasa::IndexError, others
/// brasa::Error.
[[noreturn]] void fail_checked(std::string message);

}  // namespace brasa
