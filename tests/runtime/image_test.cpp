#include "runtime/image.h"

#include <gtest/gtest.h>

#include "runtime/cpu/code.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/launch.h"
#include "support/error.h"

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
