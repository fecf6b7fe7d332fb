#include "support/lazy.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace brasa {
namespace {

std::atomic<int> g_made{0};
std::atomic<bool> g_making{false};

int slow() {
  g_making = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return ++g_made;
}

int& slow_number() {
  static constinit Lazy<int> number(slow);
  return *number;
}

// A fork finds it half made by a thread that the child has not.
TEST(Lazy, IsThereInAForkedProcess) {
  std::thread maker([] { slow_number(); });
  while (!g_making) std::this_thread::yield();
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(slow_number() == 1 ? 0 : 1);
  }
  maker.join();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Lazy, IsMadeOnceForAllThreads) {
  struct Counted {
    Counted() { ++count(); }
    static std::atomic<int>& count() {
      static constinit std::atomic<int> made{0};
      return made;
    }
  };
  static constinit Lazy<Counted> counted;
  std::vector<std::thread> threads;
  std::atomic<int> others{0};
  for (int t = 0; t < 8; ++t) threads.emplace_back([&] { others += &*counted != counted.operator->(); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(Counted::count(), 1);
  EXPECT_EQ(others, 0);
}

TEST(Lazy, OfAReferenceIsTheObjectItself) {
  static constinit Lazy<std::atomic<int>&> made([]() -> auto& { return g_made; });
  EXPECT_EQ(&*made, &g_made);
}

TEST(Lazy, IsMadeAgainWhereMakingFailed) {
  static int calls = 0;
  static constinit Lazy<int> number([] {
    if (++calls == 1) throw std::runtime_error("not yet");
    return calls;
  });
  EXPECT_THROW(*number, std::runtime_error);
  EXPECT_EQ(*number, 2);
  EXPECT_EQ(*number, 2);
}

}  // namespace
}  // namespace brasa
