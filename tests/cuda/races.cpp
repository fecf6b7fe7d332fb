#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include "fake.h"
#include "runtime/cuda/ptx.h"
#include "runtime/device.h"
#include "support/str.h"

// The fake driver refuses a kernel whose threads use shared memory without a barrier, which it would not notice by results: it runs one warp
// after the other.
namespace brasa {
namespace {

const bool kFakes = (test::use_fakes(), true);

constexpr int kThreads = 64;

bool runs(const runtime::cuda::Ptx& p, int blocks) {
  std::string text = p.kernel("sort_race", 0, kThreads, 4 * kThreads, 1, blocks > 1, blocks);
  runtime::Device& device = runtime::device_of(kCUDA);
  auto module = device.load({"nvptx+sm_80", {{"sort_race"}}, {text.begin(), text.end()}});
  try {
    device.launch({.kernel = module->kernel("sort_race"), .slots = {}, .count = blocks, .threads = kThreads},
                  runtime::kDefaultStream);
  } catch (const Error&) {
    return false;
  }
  return true;
}

// Each thread reads what the one `apart` from it has written.
bool runs(int apart, std::string_view barrier) {
  runtime::cuda::Ptx p;
  auto thread = p.r("mov.u32", "%tid.x"), own = p.r("shl.b32", thread, 2);
  p.op("st.shared.b32", str("[", own, "+0]"), thread);
  if (!barrier.empty()) p.op(barrier, barrier == "bar.sync" ? 0 : -1);
  p.r("ld.shared.b32", str("[", p.r("xor.b32", own, 4 * apart), "+0]"));
  return runs(p, 1);
}

// Each of two blocks reads what the other one has written to its shared memory.
bool runs_in_two_blocks(bool barrier_of_cluster) {
  runtime::cuda::Ptx p;
  auto thread = p.r("mov.u32", "%tid.x"), own = p.r("shl.b32", thread, 2), block = p.r("mov.u32", "%ctaid.x");
  auto there = p.r("mapa.shared::cluster.u32", own, p.r("xor.b32", block, 1));
  p.op("st.shared::cluster.f32", str("[", there, "+0]"), p.f("mov.f32", "0f00000000"));
  if (barrier_of_cluster) {
    p.op("barrier.cluster.arrive.aligned");
    p.op("barrier.cluster.wait.aligned");
  } else {
    p.op("bar.sync", 0);
  }
  p.f("ld.shared.f32", str("[", own, "+0]"));
  return runs(p, 2);
}

// The first thread writes; the first one of the second warp reads.
bool runs_with_barrier_in_memory(bool arrives, bool waits) {
  runtime::cuda::Ptx p;
  auto thread = p.r("mov.u32", "%tid.x"), zero = p.r("mov.u32", 0);
  std::string word = str("[", zero, "+0]"), barrier = str("[", zero, "+128]");
  auto by = [&](int which, const auto& does) { p.when(p.p("setp.eq.u32", thread, which), does); };
  by(0, [&] { p.op("mbarrier.init.shared::cta.b64", barrier, 1); });
  p.op("bar.sync", 0);
  by(32, [&] {
    if (waits)
      p.loop([&] { return p.p("not.pred", p.p("mbarrier.try_wait.parity.shared::cta.b64", barrier, 0)); }, [] {});
    p.r("ld.shared.b32", word);
  });
  by(0, [&] {
    p.op("st.shared.b32", word, thread);
    if (arrives) p.op("mbarrier.arrive.shared::cta.b64", "_", barrier);
  });
  return runs(p, 1);
}

// The second warp alone, or both, come to a barrier of `count` threads.
bool runs_with_counted_barrier(int count, bool both) {
  runtime::cuda::Ptx p;
  auto thread = p.r("mov.u32", "%tid.x");
  auto come = [&] { p.op("bar.sync", 1, count); };
  both ? come() : p.when(p.p("setp.ge.u32", thread, 32), come);
  return runs(p, 1);
}

TEST(FakeDriver, KnowsBarriers) {
  EXPECT_TRUE(runs_with_barrier_in_memory(true, true));
  EXPECT_FALSE(runs_with_barrier_in_memory(true, false));
  EXPECT_FALSE(runs_with_barrier_in_memory(false, true));  // waits for ever
  EXPECT_TRUE(runs_with_counted_barrier(32, false));
  EXPECT_TRUE(runs_with_counted_barrier(64, true));
  EXPECT_FALSE(runs_with_counted_barrier(64, false));
}

TEST(FakeDriver, FindsRaces) {
  EXPECT_TRUE(runs(0, ""));
  EXPECT_FALSE(runs(1, ""));
  EXPECT_TRUE(runs(1, "bar.warp.sync"));
  EXPECT_FALSE(runs(32, "bar.warp.sync"));
  EXPECT_TRUE(runs(32, "bar.sync"));
  EXPECT_TRUE(runs_in_two_blocks(true));
  EXPECT_FALSE(runs_in_two_blocks(false));
}

}  // namespace
}  // namespace brasa
