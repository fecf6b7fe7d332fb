#include "support/fresh_stack.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BRASA_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BRASA_ADDRESS_SANITIZER
#endif
#ifdef BRASA_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <exception>

#include "support/error.h"

namespace brasa {
namespace {

constexpr size_t kBytes = size_t{8} << 20;

// The address sanitizer wants to know which stack is in use.
#ifdef BRASA_ADDRESS_SANITIZER
void leave_for(void** left, const void* bottom, size_t bytes) { __sanitizer_start_switch_fiber(left, bottom, bytes); }
void arrived(void* at, const void** from, size_t* bytes) { __sanitizer_finish_switch_fiber(at, from, bytes); }
#else
void leave_for(void**, const void*, size_t) {}
void arrived(void*, const void**, size_t*) {}
#endif

struct Call {
  const std::function<void()>& f;
  std::exception_ptr error;
  ucontext_t caller, callee;
  const void* caller_stack;
  size_t caller_bytes;
};

// makecontext hands over nothing wider than an int.
void enter(unsigned high, unsigned low) {
  auto* call = reinterpret_cast<Call*>(uintptr_t{high} << 32 | low);
  arrived(nullptr, &call->caller_stack, &call->caller_bytes);
  try {
    call->f();
  } catch (...) {
    call->error = std::current_exception();
  }
  leave_for(nullptr, call->caller_stack, call->caller_bytes);
}

// Pages are taken when they are touched; the lowest one stays out of reach, so that an overflow does not go unseen.
class Stack {
 public:
  Stack() {
    memory_ =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    BRASA_CHECK(memory_ != MAP_FAILED, "there is no memory for another stack");
    mprotect(memory_, static_cast<size_t>(sysconf(_SC_PAGESIZE)), PROT_NONE);
  }
  ~Stack() { munmap(memory_, kBytes); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  void* memory() const { return memory_; }

 private:
  void* memory_;
};

}  // namespace

void on_fresh_stack(const std::function<void()>& f) {
  Stack stack;
  Call call{f, nullptr, {}, {}, nullptr, 0};
  getcontext(&call.callee);
  call.callee.uc_stack.ss_sp = stack.memory();
  call.callee.uc_stack.ss_size = kBytes;
  call.callee.uc_link = &call.caller;
  auto address = reinterpret_cast<uintptr_t>(&call);
  makecontext(&call.callee, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
  void* here = nullptr;
  leave_for(&here, stack.memory(), kBytes);
  swapcontext(&call.caller, &call.callee);
  arrived(here, nullptr, nullptr);
  if (call.error) std::rethrow_exception(call.error);
}

}  // namespace brasa
