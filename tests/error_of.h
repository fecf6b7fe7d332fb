#pragma once

#include <brasa/error.h>

#include <string>

namespace brasa {

/// What the call's brasa::Error says; empty where it throws none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace brasa
