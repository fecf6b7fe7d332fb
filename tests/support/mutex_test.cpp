#include "support/mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "support/fork.h"

namespace brasa {
namespace {

TEST(Mutex, IsFreeInAForkedProcess) {
  static auto& outer = *new Mutex;
  static auto& inner = *new Mutex;
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

// Locks of objects that come and go, each held while another one is taken.
TEST(Mutex, OfAnyObjectIsFreeInAForkedProcess) {
  struct Link {
    RecursiveMutex recursive;
    SharedMutex shared;
    int value = 0;
  };
  std::vector<std::shared_ptr<Link>> links(8);
  for (auto& link : links) link = std::make_shared<Link>();
  std::atomic<bool> done{false};
  auto work = [&](size_t i) {
    while (!done) {
      auto own = std::make_shared<Link>();
      std::lock_guard outer(own->recursive);
      Link& link = *links[i = (i + 3) % links.size()];
      std::lock_guard one(link.recursive), again(link.recursive);
      std::lock_guard two(link.shared);
      ++link.value;
      ++link.value;
    }
  };
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (int i = 0; i < 50; ++i) {
    pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      int odd = 0;
      for (auto& link : links) {
        std::lock_guard one(link->recursive);
        std::shared_lock two(link->shared);
        odd += link->value % 2;
      }
      ::_exit(odd);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  done = true;
  for (std::thread& t : threads) t.join();
}

// Each of them may take a lock: before a fork waits for locks, and when it has ended.
Mutex g_mutex;
std::atomic<int> g_before{0}, g_in_parent{0}, g_in_child{0};
template <std::atomic<int>& count>
void counted() {
  std::lock_guard lock(g_mutex);
  ++count;
}
const OnFork kOnFork(counted<g_before>, counted<g_in_parent>, counted<g_in_child>);

TEST(OnFork, IsCalledWhereLocksCanBeTaken) {
  int before = g_before, in_parent = g_in_parent;
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(g_before == before + 1 && g_in_parent == in_parent && g_in_child == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(g_before, before + 1);
  EXPECT_EQ(g_in_parent, in_parent + 1);
  EXPECT_EQ(g_in_child, 0);
}

// As one that compiles a large graph does.
TEST(Mutex, AForkWaitsForAHolderThatWorks) {
  Mutex mutex;
  std::atomic<bool> held{false};
  std::thread other([&] {
    std::lock_guard lock(mutex);
    held = true;
    held.notify_all();
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2500);
    while (std::chrono::steady_clock::now() < end) {
    }
  });
  held.wait(false);
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    std::lock_guard lock(mutex);
    ::_exit(0);
  }
  other.join();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A fork beside a thread that does not give its lock back goes on after a while.
TEST(Mutex, AForkWaitsASecondForAHolderThatDoesNothing) {
  Mutex mutex;
  std::atomic<int> step{0};
  std::thread other([&] {
    std::lock_guard lock(mutex);
    step = 1;
    step.notify_all();
    step.wait(1);
  });
  step.wait(0);
  pid_t child = ::fork();
  if (child == 0) {
    Mutex own;
    ::alarm(30);
    std::lock_guard lock(own);
    ::_exit(mutex.try_lock() ? 1 : 0);
  }
  step = 2;
  step.notify_all();
  other.join();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(held_locks(), 0);
}

}  // namespace
}  // namespace brasa
