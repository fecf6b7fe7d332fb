#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/dlpack.h>
#include <brasa/npy.h>

#include <filesystem>

// What other programs and libraries get of a compiled function while it runs: values, at once.
namespace brasa {
namespace {

namespace fs = std::filesystem;

TEST(WhileCompiling, AnArrayIsSaved) {
  fs::path path = fs::temp_directory_path() / ("brasa_compiled_" + std::to_string(::getpid()) + ".npy");
  auto f = compile([&](const Tensor& t) {
    Tensor y = t + 1;
    io::save_npy(y, path.string());
    return y * 2;
  });
  for (float x : {1.0f, 5.0f}) {
    EXPECT_TRUE(f(full({3}, x)).cpu().equal(full({3}, 2 * x + 2).cpu()));
    EXPECT_TRUE(io::load_npy(path.string()).equal(full({3}, x + 1).cpu()));
  }
  fs::remove(path);
}

// Memory that somebody else made.
struct Giver {
  float values[4] = {1, 2, 3, 4};
  int64_t size = 4;
  int deleted = 0;
  dlpack::ManagedTensorVersioned managed{};
  explicit Giver(uint64_t flags) {
    managed.version = {1, 0};
    managed.manager_ctx = this;
    managed.deleter = [](dlpack::ManagedTensorVersioned* m) { ++static_cast<Giver*>(m->manager_ctx)->deleted; };
    managed.flags = flags;
    managed.dl_tensor = {values, {1, 0}, 1, {2, 32, 1}, &size, nullptr, 0};
  }
};

TEST(WhileCompiling, MemoryIsGivenAndTaken) {
  Giver giver(0);
  {
    Tensor x = from_dlpack(&giver.managed);
    float seen = 0;
    auto f = compile([&](const Tensor& t) {
      Tensor y = t * 2;
      auto* m = to_dlpack(y);
      seen = static_cast<float*>(m->dl_tensor.data)[1];
      m->deleter(m);
      return y + 1;
    });
    for (int i = 0; i < 2; ++i) EXPECT_EQ(f(x)[3].item<float>(), 9);
    EXPECT_EQ(seen, 4);
    x.add_(1);
    EXPECT_EQ(f(x)[3].item<float>(), 11);
    EXPECT_EQ(seen, 6);
  }
  EXPECT_EQ(giver.deleted, 1);
}

// When the deleter is called, the copy of read-only memory has its values.
TEST(WhileCompiling, ReadOnlyMemoryIsCopied) {
  Giver giver(dlpack::kReadOnly);
  auto f = compile([&](const Tensor& t) {
    Tensor copy = from_dlpack(&giver.managed);
    giver.values[0] = 100;
    return copy.sum() + t;
  });
  EXPECT_EQ(f(zeros({1}).cpu()).item<float>(), 10);
  EXPECT_EQ(giver.deleted, 1);
}

}  // namespace
}  // namespace brasa
