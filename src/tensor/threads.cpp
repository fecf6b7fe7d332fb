#include <brasa/threads.h>

#include <algorithm>

#include "runtime/thread_pool.h"
#include "support/error.h"

namespace brasa {

int get_num_threads() { return runtime::thread_count(); }
void set_num_threads(int n) { runtime::set_thread_count(n); }

void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const std::function<void(int64_t, int64_t)>& body) {
  BRASA_CHECK(grain_size >= 0, "parallel_for: grain_size must not be negative, but is ", grain_size);
  if (begin >= end) return;
  runtime::parallel_for(end - begin, std::max<int64_t>(grain_size, 1),
                        [&](int64_t from, int64_t to) { body(begin + from, begin + to); });
}
bool in_parallel_region() { return runtime::in_parallel(); }

}  // namespace brasa
