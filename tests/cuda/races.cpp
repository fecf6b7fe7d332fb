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

// Each thread reads what the one `apart` from it has written.
bool runs(int apart, std::string_view barrier) {
  runtime::cuda::Ptx p;
  auto thread = p.r("mov.u32", "%tid.x"), own = p.r("shl.b32", thread, 2);
  p.op("st.shared.b32", str("[", own, "+0]"), thread);
  if (!barrier.empty()) p.op(barrier, barrier == "bar.sync" ? 0 : -1);
  p.r("ld.shared.b32", str("[", p.r("xor.b32", own, 4 * apart), "+0]"));
  std::string text = p.kernel("sort_race", 0, 64, 256);
  runtime::Device& device = runtime::device_of(kCUDA);
  auto module = device.load({"nvptx+sm_80", {{"sort_race"}}, {text.begin(), text.end()}});
  try {
    device.launch({.kernel = module->kernel("sort_race"), .slots = {}, .count = 1, .threads = 64},
                  runtime::kDefaultStream);
  } catch (const Error&) {
    return false;
  }
  return true;
}

TEST(FakeDriver, FindsRaces) {
  EXPECT_TRUE(runs(0, ""));
  EXPECT_FALSE(runs(1, ""));
  EXPECT_TRUE(runs(1, "bar.warp.sync"));
  EXPECT_FALSE(runs(32, "bar.warp.sync"));
  EXPECT_TRUE(runs(32, "bar.sync"));
}

}  // namespace
}  // namespace brasa
