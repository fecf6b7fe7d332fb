#include <brasa/brasa.h>
#include <brasa/pickle.h>
#include <brasa/serialize.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>
#include <vector>

#include "error_of.h"

// Where a saved file goes, and what is there when its writer is killed.
namespace brasa {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::string name = testing::TempDir() + "brasa-output-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  int files() const { return static_cast<int>(std::distance(fs::directory_iterator(path), fs::directory_iterator())); }
  fs::path path;
};

void save(const std::string& path, float v) { save_tensors({{"x", full({1000}, v)}}, path); }
float saved(const std::string& path) { return load_tensors(path).at("x")[999].item<float>(); }
std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
mode_t mode_of(const std::string& path) {
  struct stat status;
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(OutputFile, FollowsLinks) {
  Folder folder;
  fs::create_directory(folder.path / "there");
  fs::create_symlink("there/real", folder.path / "one");
  fs::create_symlink(folder.path / "one", folder.path / "two");
  save(folder.file("two"), 1);  // of a file that is not there yet
  EXPECT_TRUE(fs::is_symlink(folder.path / "two"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder.path / "there/real")));
  save(folder.file("two"), 2);
  EXPECT_TRUE(fs::is_symlink(folder.path / "two") && fs::is_symlink(folder.path / "one"));
  EXPECT_EQ(saved(folder.file("there/real")), 2);
  fs::create_symlink("a", folder.path / "b");
  fs::create_symlink("b", folder.path / "a");
  EXPECT_THROW(save(folder.file("a"), 3), Error);
}

TEST(OutputFile, WritesPipesAndDevicesDirectly) {
  Folder folder;
  std::string pipe = folder.file("pipe"), got;
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread reader([&] { got = text_of(pipe); });
  save(pipe, 4);
  reader.join();
  EXPECT_TRUE(fs::is_fifo(pipe));
  save(folder.file("file"), 4);
  EXPECT_EQ(got, text_of(folder.file("file")));
  save("/dev/null", 1);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THROW(save(folder.path.string(), 1), Error);
}

TEST(OutputFile, WritesFilesWithoutANameDirectly) {
  Folder folder;
  std::string name = folder.file("gone");
  int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::unlink(name.c_str()), 0);
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  save(path, 6);
  EXPECT_EQ(saved(path), 6);
  EXPECT_EQ(folder.files(), 0);
  ::close(fd);
}

// As another user than root, who may write everywhere.
int status_of(const std::function<void()>& f) {
  pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) ::_exit(2);
    try {
      f();
    } catch (const Error&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(OutputFile, WritesInPlaceWhereTheFolderCannotBeWritten) {
  Folder folder;
  std::string path = folder.file("x"), other = folder.file("y");
  save(path, 1);
  save(other, 1);
  ::chmod(path.c_str(), 0666);
  ::chmod(other.c_str(), 0444);
  ::chmod(folder.path.c_str(), 0555);
  EXPECT_EQ(status_of([&] { save(path, 2); }), 0);
  EXPECT_EQ(status_of([&] { save(other, 2); }), 1);
  EXPECT_EQ(status_of([&] { save(folder.file("new"), 2); }), 1);
  EXPECT_EQ(saved(path), 2);
  EXPECT_EQ(saved(other), 1);
  ::chmod(folder.path.c_str(), 01777);  // where others' files may be written, but not replaced
  EXPECT_EQ(status_of([&] { save(path, 3); }), 0);
  EXPECT_EQ(saved(path), 3);
  ::chmod(folder.path.c_str(), 0700);
  EXPECT_EQ(folder.files(), 2);
}

TEST(OutputFile, KeepsModes) {
  Folder folder;
  std::string path = folder.file("x");
  mode_t before = ::umask(022);
  save(path, 1);
  EXPECT_EQ(mode_of(path), 0644u);
  for (mode_t mode : {0600, 0664, 0640}) {
    ::chmod(path.c_str(), mode);
    save(path, 2);
    EXPECT_EQ(mode_of(path), mode);
  }
  ::umask(before);
}

TEST(OutputFile, TakesLongNamesAndNoBadOnes) {
  Folder folder;
  std::string name(255, 'n');
  save(folder.file(name), 5);
  EXPECT_EQ(saved(folder.file(name)), 5);
  EXPECT_THROW(save(folder.file(name + "n"), 1), Error);
  EXPECT_THROW(save("", 1), Error);
  EXPECT_THROW(load_tensors(""), Error);
  std::string cut = folder.file("cut") + std::string("\0me", 3);
  EXPECT_THROW(save(cut, 1), Error);
  save(folder.file("cut"), 1);
  EXPECT_THROW(load_tensors(cut), Error);
  EXPECT_THROW(pickle::load(cut), Error);
}

TEST(OutputFile, APipeWithoutAWriterDoesNotHoldAReaderUp) {
  Folder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_THROW(load_tensors(folder.file("pipe")), Error);
  EXPECT_THROW(pickle::load(folder.file("pipe")), Error);
}

TEST(OutputFile, AKilledWriterLeavesTheOldFileOrTheNew) {
  Folder folder;
  std::string path = folder.file("x");
  save(path, 1);
  float last = 1;
  for (int round = 0; round < 20; ++round) {
    pid_t child = ::fork();
    if (child == 0)
      for (float v = last;;) save(path, ++v);
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 700 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    float now = saved(path);
    ASSERT_GE(now, last);
    last = now;
  }
  save(path, 7);
  EXPECT_EQ(saved(path), 7);
  EXPECT_EQ(folder.files(), 1) << "what killed writers left is there after the next save";
}

TEST(OutputFile, WritersSideBySideLeaveAWholeFile) {
  Folder folder;
  std::string path = folder.file("x");
  save(path, 1);
  std::vector<pid_t> writers;
  for (int i = 0; i < 4; ++i) {
    writers.push_back(::fork());
    if (writers.back() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (float v = 1;;) save(path, v);
  }
  int bad = 0;
  for (int i = 0; i < 3000; ++i) bad += error_of([&] { saved(path); }).empty() ? 0 : 1;
  for (pid_t writer : writers) {
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
  }
  EXPECT_EQ(bad, 0);
  save(path, 7);
  EXPECT_EQ(saved(path), 7);
  EXPECT_EQ(folder.files(), 1);
}

TEST(OutputFile, FailedWritesLeaveNothing) {
  Folder folder;
  save(folder.file("x"), 1);
  EXPECT_THROW(save_tensors({{"x", full({3}, 2)}, {"y", Tensor()}}, folder.file("x")), Error);
  EXPECT_EQ(saved(folder.file("x")), 1);
  EXPECT_EQ(folder.files(), 1);
}

// A limit of this process stands for a disk that is full.
TEST(OutputFile, AFullDiskIsAnErrorThatNamesTheFile) {
  Folder folder;
  std::string path = folder.file("x");
  save(path, 1);
  struct rlimit whole, small = {1000, RLIM_INFINITY};
  ::getrlimit(RLIMIT_FSIZE, &whole);
  auto old = ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string error = error_of([&] { save(path, 2); });
  ::setrlimit(RLIMIT_FSIZE, &whole);
  ::signal(SIGXFSZ, old);
  EXPECT_NE(error.find("cannot write " + path + ": "), std::string::npos) << error;
  EXPECT_EQ(saved(path), 1);
  EXPECT_EQ(folder.files(), 1);

  std::ofstream full("/dev/full");  // whose buffer holds all of it
  EXPECT_NE(error_of([&] { brasa::save(ones({2}), full); }), "");
}

// A hundred thousand take a third of a second; were it quadratic, minutes.
TEST(Files, OfManyTensorsTakeLinearTime) {
  Folder folder;
  auto seconds = [&](int n) {
    TensorDict many;
    for (int i = 0; i < n; ++i) many.emplace("layers." + std::to_string(i), full({1}, i));
    auto start = std::chrono::steady_clock::now();
    save_tensors(many, folder.file("x"));
    EXPECT_EQ(load_tensors(folder.file("x")).size(), many.size());
    std::vector<std::pair<pickle::Value, pickle::Value>> pairs;
    for (const auto& [name, tensor] : many) pairs.emplace_back(name, tensor);
    pickle::save(pickle::Value::dict(std::move(pairs)), folder.file("y"));
    EXPECT_EQ(load_tensors(folder.file("y")).size(), many.size());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  double few = seconds(3000), many = seconds(30000);
  EXPECT_LT(many, 30 * few + 1) << few;
}

}  // namespace
}  // namespace brasa
