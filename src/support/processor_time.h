#pragma once

#include <time.h>

#include <cstdint>

namespace brasa {

/// What this thread has had of processors, in nanoseconds. Asking takes about as long as a small kernel.
inline int64_t processor_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

}  // namespace brasa
