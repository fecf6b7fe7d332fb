#include <brasa/threads.h>

#include "runtime/thread_pool.h"

namespace brasa {

int get_num_threads() { return runtime::thread_count(); }
void set_num_threads(int n) { runtime::set_thread_count(n); }

}  // namespace brasa
