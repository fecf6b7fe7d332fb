#include "runtime/image.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/cpu/code.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/launch.h"
#include "support/error.h"
#include "support/mutex.h"

namespace brasa::runtime {
namespace {

KernelImage sample() {
  KernelImage image;
  image.target = "x86-64";
  // mov rax, [rdi]; sub rdx, rsi; lock add [rax], rdx; ret
  image.code = {0x90, 0x90, 0x48, 0x8b, 0x07, 0x48, 0x29, 0xf2, 0xf0, 0x48, 0x01, 0x10, 0xc3};
  image.entries = {{"first", 2}};
  return image;
}

TEST(Image, RoundTrip) {
  KernelImage image = KernelImage::parse(sample().serialize());
  EXPECT_EQ(image.target, "x86-64");
  EXPECT_EQ(image.code, sample().code);
  ASSERT_EQ(image.entries.size(), 1u);
  EXPECT_EQ(image.entries[0].name, "first");
  EXPECT_EQ(image.entries[0].offset, 2u);
}

TEST(Image, DamageIsFound) {
  std::string bytes = sample().serialize();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] ^= 0x10;
    EXPECT_THROW(KernelImage::parse(bad), Error) << i;
    EXPECT_THROW(KernelImage::parse(bytes.substr(0, i)), Error) << i;
  }
  EXPECT_THROW(KernelImage::parse(bytes + "x"), Error);
}

#if defined(__x86_64__)
TEST(Image, LoadsAndRuns) {
  auto code = cpu::load(sample());
  int64_t total = 0;
  const Slot slots[] = {reinterpret_cast<Slot>(&total)};
  cpu::launch(code->function("first"), slots, 1000, 10);
  EXPECT_EQ(total, 1000);
  EXPECT_THROW(code->kernel("second"), Error);
}

KernelImage adding(uint8_t n) {
  KernelImage image = sample();
  // mov rax, [rdi]; add qword ptr [rax], n; ret
  image.code = {0x48, 0x8b, 0x07, 0x48, 0x81, 0x00, n, 0, 0, 0, 0xc3};
  image.entries = {{"first", 0}};
  return image;
}
int64_t run(const std::shared_ptr<const cpu::Code>& code) {
  int64_t total = 0;
  const Slot slots[] = {reinterpret_cast<Slot>(&total)};
  code->function(0)(slots, 0, 1, nullptr);
  return total;
}

// Both go on with what was loaded before, and neither sees what the other loads in its place.
TEST(Image, ForkedProcessesLoadForThemselves) {
  auto before = cpu::load(adding(1)), last = cpu::load(adding(2));
  int to_parent[2], to_child[2];
  ASSERT_TRUE(::pipe(to_parent) == 0 && ::pipe(to_child) == 0);
  char go = 0;
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    auto own = cpu::load(adding(3));
    bool told = ::write(to_parent[1], &go, 1) == 1 && ::read(to_child[0], &go, 1) == 1;
    ::_exit(told && run(before) == 1 && run(last) == 2 && run(own) == 3 ? 0 : 1);
  }
  ASSERT_EQ(::read(to_parent[0], &go, 1), 1);
  last.reset();
  auto own = cpu::load(adding(4)), another = cpu::load(adding(5));
  ASSERT_EQ(::write(to_child[1], &go, 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(run(before) + run(own) + run(another), 10);
  for (int end : {to_parent[0], to_parent[1], to_child[0], to_child[1]}) ::close(end);
}

// What another thread of the parent loads around the fork, in place of what it has dropped.
TEST(Image, ForkedProcessesKeepWhatIsReplaced) {
  struct Loaded {
    cpu::KernelFunction function;
    int64_t adds;
  };
  std::atomic<const Loaded*> last{nullptr};
  std::atomic<bool> done{false};
  std::thread other([&] {
    std::vector<std::unique_ptr<Loaded>> all;
    for (uint8_t n = 1; !done; n = n % 100 + 1) {
      auto code = cpu::load(adding(n));
      all.push_back(std::make_unique<Loaded>(Loaded{code->function(0), n}));
      last = all.back().get();
      for (int k = 0; k < 500; ++k) run(code);
      last = nullptr;
    }
  });
  Mutex mutex;
  std::thread holder([&] {
    while (!done) {
      std::lock_guard lock(mutex);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  for (int i = 0; i < 200; ++i) {
    pid_t child = ::fork();  // waits for who holds the lock
    if (child == 0) {
      ::alarm(60);
      const Loaded* here = last;
      bool same = true;
      for (int k = 0; here && k < 20000; ++k) {
        int64_t total = 0;
        const Slot slots[] = {reinterpret_cast<Slot>(&total)};
        here->function(slots, 0, 1, nullptr);
        same = same && total == here->adds;
      }
      ::_exit(same ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << i;
  }
  done = true;
  other.join();
  holder.join();
}

TEST(Image, ManyImagesShareTheArena) {
  std::vector<std::shared_ptr<const cpu::Code>> all;
  for (int i = 0; i < 2000; ++i) all.push_back(cpu::load(sample()));
  all.erase(all.begin() + 100, all.begin() + 1900);
  for (auto& c : all) {
    int64_t total = 0;
    const Slot slots[] = {reinterpret_cast<Slot>(&total)};
    c->function(0)(slots, 5, 8, nullptr);
    EXPECT_EQ(total, 3);
  }
}

TEST(Image, ForeignTargetIsRefused) {
  KernelImage image = sample();
  image.target = "x86-64+imaginary";
  EXPECT_THROW(cpu::load(image), Error);
}

TEST(Features, HostRunsItself) {
  EXPECT_TRUE(cpu::supports(cpu::host_target()));
  EXPECT_TRUE(cpu::supports("x86-64"));
  EXPECT_FALSE(cpu::supports("riscv"));
}
#endif

}  // namespace
}  // namespace brasa::runtime
