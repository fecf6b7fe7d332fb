// The cache of compiled kernels in another process, copied as a folder and as one file.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <brasa/autograd.h>
#include <brasa/cache.h>
#include <brasa/stats.h>

#include "support/str.h"
#include "values.h"

namespace brasa {
namespace {

namespace fs = std::filesystem;

// What a process says that ran the program.
struct Said {
  int64_t generated = -1, from_disk = -1;
  std::string values;
};

// Training steps, sizes that become symbolic, a graph break, eager operators. A process that is asked for does this and no more.
void run_program(const std::string& report) {
  if (const char* bundle = std::getenv("BRASA_TEST_LOAD")) cache::load(bundle);
  manual_seed(0);
  Tensor w = randn({4, 6}).requires_grad_(), kernel = randn({2, 1, 3});
  auto step = compile([&](const Tensor& x) {
    w.mutable_grad().reset();
    Tensor loss = conv1d(x.matmul(w).tanh().unsqueeze(1), kernel).softmax(2).square().sum();
    loss.backward();
    NoGradGuard no_grad;
    w.sub_(w.grad(), 0.1);
    return loss.detach();
  });
  auto broken =
      compile([](const Tensor& x) { return x.sum().item<float>() > 0 ? x.cumsum(0).exp() : std::get<0>(x.sort()); });
  std::ofstream out(report);
  std::string values;
  for (int64_t n : {3, 5, 8}) {
    Tensor x = randn({n, 4}), y = broken(x).sum(), e = (x.cos() * 2).amax(1).sum();
    values += str(" ", step(x).item<double>(), " ", y.item<double>(), " ", e.item<double>());
  }
  if (const char* bundle = std::getenv("BRASA_TEST_SAVE")) cache::save(bundle);
  out << stats().kernels_generated << " " << stats().kernels_from_disk << values;
}

class CopiedCache : public testing::Test {
 protected:
  CopiedCache() {
    std::string name = testing::TempDir() + "brasa-copied-XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~CopiedCache() override { fs::remove_all(folder); }

  // In a new process, without the kernels that ship with the library.
  Said program(const std::string& cache, const char* setting = nullptr) {
    std::string report = folder / "report", command;
    auto set = [&](const char* name, const std::string& value) { command += str(name, "='", value, "' "); };
    set("BRASA_PACK", folder / "no pack");
    set("BRASA_CACHE_DIR", cache);
    set("BRASA_TIERS", "optimized");  // when baseline code is compiled once more depends on how long it runs
    set("BRASA_TEST_REPORT", report);
    if (setting) set(setting, folder / "bundle");
    command += str("'", fs::read_symlink("/proc/self/exe").string(),
                   "' --gtest_filter=CopiedCache.NothingIsCompiledAgain > /dev/null");
    Said said;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream in(report);
    in >> said.generated >> said.from_disk;
    std::getline(in, said.values);
    return said;
  }

  fs::path folder;
};

TEST_F(CopiedCache, NothingIsCompiledAgain) {
  if (const char* report = std::getenv("BRASA_TEST_REPORT")) return run_program(report);
  Said first = program(folder / "first", "BRASA_TEST_SAVE");
  EXPECT_GT(first.generated, 5);
  EXPECT_FALSE(first.values.empty());
  fs::copy(folder / "first", folder / "copied", fs::copy_options::recursive);
  fs::remove_all(folder / "first");
  for (const Said& again : {program(folder / "copied"), program(folder / "loaded", "BRASA_TEST_LOAD")}) {
    EXPECT_EQ(again.generated, 0);
    EXPECT_EQ(again.from_disk, first.generated + first.from_disk);
    EXPECT_EQ(again.values, first.values);
  }
}

}  // namespace
}  // namespace brasa
