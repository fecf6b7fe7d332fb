#pragma once

#include "support/scoped.h"

namespace brasa {

inline thread_local bool unwritten_is_zero = false;

/// While one lives, elements of the host's that `empty` leaves unwritten are 0: what is recorded to be kept must not depend on them.
class ZerosUnwritten : Scoped<bool> {
 public:
  ZerosUnwritten() : Scoped(unwritten_is_zero, true) {}
};

}  // namespace brasa
