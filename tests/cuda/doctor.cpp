#include <brasa/doctor.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "fake.h"
#include "runtime/cuda/library.h"

// What `brasa doctor` finds, with the fake driver and cuBLASLt, and where libraries are looked for.
namespace brasa {
namespace {

namespace fs = std::filesystem;

const bool kFakes = (test::use_fakes(), true);

Finding of(const std::string& area, const std::string& name) {
  for (Finding& f : examine())
    if (f.area == area && f.name == name) return f;
  ADD_FAILURE() << "nothing is said of " << area << " " << name;
  return {};
}

// What prototypes are checked with where NVIDIA's headers are installed.
struct Handle_;
struct Other_;
enum Code : int {};
template <class Ours, class Theirs>
constexpr bool kSame = runtime::cuda::same_call(static_cast<Ours*>(nullptr), static_cast<Theirs*>(nullptr));
static_assert(kSame<int(Handle_*, unsigned), Code(Other_*, unsigned)>);
static_assert(kSame<int(Handle_**, size_t), Code(Other_**, unsigned long)>);
static_assert(!kSame<int(Handle_*, unsigned), int(Other_*)>);
static_assert(!kSame<int(unsigned), int(size_t)>);
static_assert(!kSame<int(Handle_*), int(size_t)>);
static_assert(!kSame<int(float), int(int)>);
static_assert(!kSame<size_t(), int()>);

// With a folder of its own for kernels, if nothing has used the cache before.
class Doctor : public ::testing::Test {
 protected:
  static fs::path cache() { return fs::temp_directory_path() / ("brasa-doctor-" + std::to_string(getpid())); }
  static void SetUpTestSuite() { setenv("BRASA_CACHE_DIR", cache().c_str(), 1); }
  static void TearDownTestSuite() { fs::remove_all(cache()); }
};

TEST_F(Doctor, FindsTheFakes) {
  Finding driver = of("cuda", "driver"), gpu = of("cuda", "cuda:0"), products = of("cuda", "cuBLASLt");
  EXPECT_EQ(driver.state, Finding::State::Found);
  EXPECT_TRUE(driver.value.starts_with("CUDA 13.2")) << driver.value;
  EXPECT_EQ(driver.where, BRASA_FAKES "/libcuda.so.1 (BRASA_CUDA_LIBRARIES)");
  EXPECT_TRUE(driver.advice.empty());
  EXPECT_NE(gpu.value.find("a GPU of tests, compute capability 9.0"), std::string::npos) << gpu.value;
  EXPECT_EQ(products.value, "13.1.0");
}

TEST_F(Doctor, SaysWhatToDo) {
  for (const Finding& f : examine()) {
    EXPECT_FALSE(f.value.empty()) << f.name;
    EXPECT_TRUE(f.state == Finding::State::Found || !f.advice.empty()) << f.name;
  }
  EXPECT_EQ(of("cpu", "code").state, Finding::State::Found);
  EXPECT_NE(of("cpu", "caches").value.find("L1d"), std::string::npos);
}

// Code that others may change is not run.
TEST_F(Doctor, LooksAtTheModeOfTheDiskCache) {
  Finding found = of("kernels", "disk cache");
  if (found.where != cache()) GTEST_SKIP() << "another test has used " << found.where;
  EXPECT_EQ(found.state, Finding::State::Found);
  fs::create_directories(cache());
  fs::permissions(cache(), fs::perms::owner_all | fs::perms::group_write);
  found = of("kernels", "disk cache");
  EXPECT_EQ(found.state, Finding::State::Unusable);
  EXPECT_NE(found.value.find("mode 0720"), std::string::npos) << found.value;
  EXPECT_TRUE(found.advice.starts_with("chmod go-w")) << found.advice;
  fs::permissions(cache(), fs::perms::owner_all);
  EXPECT_EQ(of("kernels", "disk cache").state, Finding::State::Found);
}

// Where libraries lie, each place on its own.
class Places : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"BRASA_CUDA_LIBRARIES", "CUDA_HOME", "PATH", "HOME"}) {
      saved_.emplace_back(name, getenv(name) ? getenv(name) : "");
      setenv(name, "", 1);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : saved_) setenv(name.c_str(), value.c_str(), 1);
    fs::remove_all(root_);
  }
  // A library of a name of its own, which nothing has loaded already.
  std::string put(const fs::path& folder) {
    static int made = 0;
    std::string name = "libplace" + std::to_string(made++) + ".so";
    fs::create_directories(root_ / folder);
    fs::copy_file(fs::path(BRASA_FAKES) / "libcublasLt.so.13", root_ / folder / name);
    return name;
  }
  static runtime::cuda::Library find(const std::string& name) {
    const char* names[] = {name.c_str()};
    return runtime::cuda::open_library(names);
  }
  void expect_found(const std::string& name, const fs::path& folder, const char* by) {
    runtime::cuda::Library l = find(name);
    EXPECT_NE(l.handle, nullptr) << l.why_not;
    EXPECT_EQ(l.path, (root_ / folder / name).string());
    EXPECT_EQ(l.found_by, by);
  }
  const fs::path root_ = fs::temp_directory_path() / ("brasa-places-" + std::to_string(getpid()));

 private:
  std::vector<std::pair<std::string, std::string>> saved_;
};

TEST_F(Places, InTheirOrder) {
  std::string a = put("variable"), b = put("toolkit/lib64"), c = put("lib/python3.11/site-packages/nvidia/cu13/lib"),
              d = put("home/.local/lib/python3.12/site-packages/nvidia/cublas/lib");
  runtime::cuda::Library none = find(a);
  EXPECT_EQ(none.handle, nullptr);
  EXPECT_NE(none.why_not.find(a), std::string::npos) << none.why_not;
  fs::create_directories(root_ / "bin");
  std::ofstream(root_ / "bin" / "python3") << "";
  setenv("BRASA_CUDA_LIBRARIES", ((root_ / "empty").string() + ":" + (root_ / "variable").string()).c_str(), 1);
  setenv("CUDA_HOME", (root_ / "toolkit").c_str(), 1);
  setenv("PATH", (root_ / "bin").c_str(), 1);
  setenv("HOME", (root_ / "home").c_str(), 1);
  expect_found(a, "variable", "BRASA_CUDA_LIBRARIES");
  expect_found(b, "toolkit/lib64", "CUDA_HOME");
  expect_found(c, "lib/python3.11/site-packages/nvidia/cu13/lib", "packages of a Python");
  expect_found(d, "home/.local/lib/python3.12/site-packages/nvidia/cublas/lib", "packages of a Python");
  // The variable goes before the others; a file that cannot be loaded does not stop the search.
  fs::copy_file(root_ / "toolkit/lib64" / b, root_ / "variable" / b);
  expect_found(b, "variable", "BRASA_CUDA_LIBRARIES");
  std::string e = put("toolkit/lib64");
  std::ofstream(root_ / "variable" / e) << "no library";
  expect_found(e, "toolkit/lib64", "CUDA_HOME");
}

}  // namespace
}  // namespace brasa
