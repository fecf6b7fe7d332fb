#include "support/fresh_stack.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BRASA_ADDRESS_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define BRASA_THREAD_SANITIZER
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define BRASA_ADDRESS_SANITIZER
#endif
#ifdef __SANITIZE_THREAD__
#define BRASA_THREAD_SANITIZER
#endif
#ifdef BRASA_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef BRASA_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <utility>

#include "support/error.h"

namespace brasa {
namespace {

// The most that is used of any stack. The thread sanitizer notes each call of a stack in a table of 65,536, whose end it does not check: a
// recursion through small frames fills that before it fills 8 MiB.
#ifdef BRASA_THREAD_SANITIZER
constexpr size_t kBytes = size_t{2} << 20;
#else
constexpr size_t kBytes = size_t{8} << 20;
#endif

// The address sanitizer wants to know which stack is in use. What it marked on one that ends would stay for what lies there next.
#ifdef BRASA_ADDRESS_SANITIZER
void leave_for(void** left, const void* bottom, size_t bytes) { __sanitizer_start_switch_fiber(left, bottom, bytes); }
void arrived(void* at, const void** from, size_t* bytes) { __sanitizer_finish_switch_fiber(at, from, bytes); }
void ended(void* stack, size_t bytes) { __asan_unpoison_memory_region(stack, bytes); }
#else
void leave_for(void**, const void*, size_t) {}
void arrived(void*, const void**, size_t*) {}
void ended(void*, size_t) {}
#endif

// So does the thread sanitizer, which counts the calls of each stack: a function that changes it neither begins nor ends in between.
#ifdef BRASA_THREAD_SANITIZER
class Fiber {
 public:
  Fiber() : from_(__tsan_get_current_fiber()), own_(__tsan_create_fiber(0)) {}
  ~Fiber() { __tsan_destroy_fiber(own_); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  [[gnu::always_inline]] void enter() const { __tsan_switch_to_fiber(own_, 0); }
  [[gnu::always_inline]] void leave() const { __tsan_switch_to_fiber(from_, 0); }

 private:
  void *from_, *own_;
};
#else
struct Fiber {
  void enter() const {}
  void leave() const {}
};
#endif

// The lowest address that this thread uses of the stack that it runs on; null as long as nobody asked.
thread_local constinit char* t_lowest = nullptr;

char* lowest_of_thread() {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return nullptr;
  pthread_attr_getstack(&attributes, &lowest, &bytes);
  pthread_attr_destroy(&attributes);
  return static_cast<char*>(lowest) + (bytes > kBytes ? bytes - kBytes : 0);
}

struct Call {
  const std::function<void()>& f;
  std::exception_ptr error;
  ucontext_t caller, callee;
  const void* caller_stack;
  size_t caller_bytes;
  Fiber fiber;
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
  call->fiber.leave();
  setcontext(&call->caller);
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
  ~Stack() {
    ended(memory_, kBytes);
    munmap(memory_, kBytes);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  void* memory() const { return memory_; }

 private:
  void* memory_;
};

}  // namespace

bool stack_is_low(size_t bytes) {
  if (!t_lowest) [[unlikely]]
    t_lowest = lowest_of_thread();
  auto* here = static_cast<char*>(__builtin_frame_address(0));
  return here < t_lowest + bytes;
}

void on_fresh_stack(const std::function<void()>& f) {
  Stack stack;
  Call call{f, nullptr, {}, {}, nullptr, 0, {}};
  getcontext(&call.callee);
  call.callee.uc_stack.ss_sp = stack.memory();
  call.callee.uc_stack.ss_size = kBytes;
  call.callee.uc_link = nullptr;
  auto address = reinterpret_cast<uintptr_t>(&call);
  makecontext(&call.callee, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
  void* here = nullptr;
  leave_for(&here, stack.memory(), kBytes);
  call.fiber.enter();
  char* lowest = std::exchange(t_lowest, static_cast<char*>(stack.memory()) + sysconf(_SC_PAGESIZE));
  swapcontext(&call.caller, &call.callee);
  t_lowest = lowest;
  arrived(here, nullptr, nullptr);
  if (call.error) std::rethrow_exception(call.error);
}

}  // namespace brasa
