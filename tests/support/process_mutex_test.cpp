#include "support/process_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace brasa {
namespace {

TEST(ProcessMutex, IsFreeInAForkedProcess) {
  static auto& outer = *new ProcessMutex;
  static auto& inner = *new ProcessMutex;
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      std::lock_guard one(outer);
      std::lock_guard two(inner);
    }
  });
  for (int i = 0; i < 20; ++i) {
    pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      std::lock_guard one(inner);
      std::lock_guard two(outer);
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  done = true;
  other.join();
}

}  // namespace
}  // namespace brasa
