#include "runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/error.h"
#include "support/mutex.h"

namespace brasa::runtime {
namespace {

struct Threads {
  explicit Threads(int n) : before(get_num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  int before;
};

TEST(ThreadPool, CoversEveryIndexOnce) {
  for (int threads : {1, 2, 5}) {
    Threads t(threads);
    for (int64_t n : {0, 1, 2, 7, 64, 1000, 4099})
      for (int64_t grain : {0, 1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> hits(n);
        parallel_for(n, grain, [&](int64_t begin, int64_t end) {
          EXPECT_LT(begin, end);
          EXPECT_TRUE(end == n || end - begin >= grain);
          for (int64_t i = begin; i < end; ++i) hits[i].fetch_add(1);
        });
        for (auto& h : hits) ASSERT_EQ(h.load(), 1) << n << " by " << grain;
      }
  }
}

TEST(ThreadPool, ManySmallJobs) {
  Threads t(4);
  int64_t total = 0;
  for (int job = 0; job < 5000; ++job) {
    std::atomic<int64_t> sum{0};
    parallel_for(8, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
    total += sum;
  }
  EXPECT_EQ(total, 5000 * 28);
}

TEST(ThreadPool, UsesSeveralThreads) {
  Threads t(2);
  std::atomic<int> inside{0};
  std::atomic<bool> both{false};
  parallel_for(2, 1, [&](int64_t, int64_t) {
    inside.fetch_add(1);
    for (int i = 0; i < 2000 && inside.load() < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (inside.load() == 2) both = true;
  });
  EXPECT_TRUE(both);
}

TEST(ThreadPool, NestedCallsRunSerially) {
  Threads t(3);
  std::atomic<int64_t> sum{0};
  EXPECT_FALSE(in_parallel_region());
  parallel_for(6, 1, [&](int64_t begin, int64_t end) {
    EXPECT_TRUE(in_parallel_region());
    auto outer = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i)
      parallel_for(10, 1, [&](int64_t b, int64_t e) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        sum += e - b;
      });
  });
  EXPECT_EQ(sum, 60);
  EXPECT_FALSE(in_parallel_region());
}

TEST(ThreadPool, ExceptionsReachTheCaller) {
  Threads t(3);
  for (int job = 0; job < 50; ++job)
    EXPECT_THROW(parallel_for(100, 1,
                              [&](int64_t begin, int64_t end) {
                                if (begin <= 57 && 57 < end) throw std::runtime_error("57");
                              }),
                 std::runtime_error);
  int64_t count = 0;
  parallel_for(1, 1, [&](int64_t, int64_t) { ++count; });
  EXPECT_EQ(count, 1);
}

TEST(ThreadPool, SeveralCallers) {
  Threads t(2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int job = 0; job < 200; ++job) parallel_for(16, 1, [&](int64_t b, int64_t e) { sum += e - b; });
    });
  for (auto& c : callers) c.join();
  EXPECT_EQ(sum, 4 * 200 * 16);
}

int64_t sum_below(int64_t n) {
  std::atomic<int64_t> sum{0};
  parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += i;
  });
  return sum;
}

int threads_of_process() {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) n += !entry.path().empty();
  return n;
}

TEST(ThreadPool, ThreadsThatAreTooManyLeave) {
  Threads t(1);
  for (int n = 1; n <= 40; ++n) {
    set_num_threads(n);
    EXPECT_EQ(sum_below(100), 4950);
  }
  EXPECT_GE(threads_of_process(), 40);
  EXPECT_LE(threads_of_process(), 60);  // not 1 + 2 + … + 40
  set_num_threads(2);
  for (int i = 0; i < 5000 && threads_of_process() > 12; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_LE(threads_of_process(), 12);  // some belong to the test program's runtime
  EXPECT_EQ(sum_below(100), 4950);
}

TEST(ThreadPool, TheNumberMayChangeWhileOthersCompute) {
  Threads t(2);
  std::atomic<bool> done{false};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&] {
      for (int job = 0; job < 2000; ++job) EXPECT_EQ(sum_below(50), 1225);
    });
  std::thread changer([&] {
    for (int n = 1; !done; n = n % 7 + 1) set_num_threads(n);
  });
  for (auto& c : callers) c.join();
  done = true;
  changer.join();
}

TEST(ThreadPool, ForkedProcessesComputeToo) {
  Threads t(3);
  EXPECT_EQ(sum_below(100), 4950);
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(sum_below(100) == 4950 && sum_below(1000) == 499500 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(sum_below(100), 4950);
}

// Of one whose thread holds a lock, the other threads' work takes locks, too, while a fork waits for the first.
TEST(ThreadPool, WorkOfALockedThreadEndsBeforeAFork) {
  Threads t(3);
  Mutex outer, inner;
  std::atomic<bool> done{false};
  std::atomic<int> rounds{0};
  std::thread other([&] {
    while (!done) {
      std::lock_guard lock(outer);
      ++rounds;
      parallel_for(64, 1, [&](int64_t, int64_t) {
        for (int i = 0; i < 100; ++i) std::lock_guard own(inner);
      });
    }
  });
  for (int i = 0; i < 10; ++i) {
    for (int before = rounds; rounds == before;) std::this_thread::yield();
    pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      ::_exit(outer.try_lock() && inner.try_lock() ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  done = true;
  other.join();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
TEST(ThreadPool, RunsWithFewerThreadsWhereTheSystemGivesNoMore) {
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    // Room for the stacks of a few.
    rlimit limit{pages * 4096 + (64 << 20), RLIM_INFINITY};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(2);
    set_num_threads(200);
    ::_exit(sum_below(1000) == 499500 && sum_below(1000) == 499500 && threads_of_process() < 100 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

TEST(ThreadPool, RejectsABadNumber) { EXPECT_THROW(set_num_threads(0), Error); }

}  // namespace
}  // namespace brasa::runtime
