#include "support/fork.h"
#include "support/mutex.h"

namespace brasa {

// In place of support/mutex.cpp. The library counts a thread that is in here as one that holds a lock (kernels/codegen_client.cpp), so that
// no other thread forks meanwhile. One that waited in here for a fork, as for the library's own locks, would wait for what waits for it.
void detail::begin_lock() {}
void detail::end_lock() {}

uint64_t forks() { return 0; }
int held_locks() { return 0; }
WorkForHolder::WorkForHolder(bool) : holds_(false) {}
WorkForHolder::~WorkForHolder() { (void)holds_; }

OnFork::OnFork(void (*b)(), void (*p)(), void (*c)()) : before(b), in_parent(p), in_child(c), next(nullptr) {}

}  // namespace brasa
