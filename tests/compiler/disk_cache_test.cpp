#include "compiler/kernels/disk_cache.h"

#include <brasa/cache.h>
#include <brasa/warning.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "compiler/version.h"
#include "support/error.h"
#include "support/hash.h"

// What the cache of compiled code trusts, and how much it keeps.
namespace brasa::compiler {
namespace {

namespace fs = std::filesystem;

std::string key(int i) { return "k" + hash_name(std::to_string(i)); }

struct Folder {
  Folder() {
    std::string name = testing::TempDir() + "brasa-cache-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  fs::path version() const { return path / std::string(kCompilerVersion); }
  fs::path entry(int i) const { return version() / key(i); }
  fs::path path;
};

struct Heard : WarningHandler {
  Heard() { Warning::set_warning_handler(this); }
  ~Heard() override { Warning::set_warning_handler(nullptr); }
  void process(const SourceLocation&, const std::string& m, bool) override { said += m + "\n"; }
  std::string said;
};

TEST(DiskCache, KeepsWhatWasWritten) {
  Folder f;
  DiskCache cache((f.path / "new/folder").string(), 1 << 20);
  EXPECT_EQ(cache.read(key(1)), std::nullopt);
  cache.write(key(1), "code");
  cache.write(key(2), "");
  EXPECT_EQ(cache.read(key(1)), "code");
  EXPECT_EQ(cache.read(key(2)), "");
  cache.write(key(1), "newer");
  EXPECT_EQ(cache.read(key(1)), "newer");
  struct stat status;
  ASSERT_EQ(::stat((f.path / "new/folder").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_EQ(cache.read("../" + key(1)), std::nullopt);
  DiskCache off("", 1);
  off.write(key(1), "code");
  EXPECT_EQ(off.read(key(1)), std::nullopt);
}

TEST(DiskCache, OfOthersIsNotUsed) {
  Folder f;
  Heard heard;
  DiskCache cache(f.path.string(), 1 << 20);
  cache.write(key(1), "code");
  for (mode_t mode : {0777, 0770, 0702}) {
    for (const fs::path& folder : {f.path, f.version()}) {
      ::chmod(folder.c_str(), mode);
      EXPECT_EQ(cache.read(key(1)), std::nullopt);
      cache.write(key(2), "code");
      EXPECT_FALSE(fs::exists(f.entry(2)));
      ::chmod(folder.c_str(), 0700);
    }
    ::chmod(f.entry(1).c_str(), mode);
    EXPECT_EQ(cache.read(key(1)), std::nullopt);
    ::chmod(f.entry(1).c_str(), 0600);
  }
  EXPECT_EQ(cache.read(key(1)), "code");
  EXPECT_EQ(heard.said.find("are not kept", heard.said.find("are not kept") + 1), std::string::npos) << heard.said;
  if (::geteuid() != 0) return;  // only root can make another's folder
  ASSERT_EQ(::chown(f.path.c_str(), 12345, 12345), 0);
  EXPECT_EQ(cache.read(key(1)), std::nullopt);
  ASSERT_EQ(::chown(f.path.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(f.entry(1).c_str(), 12345, 12345), 0);
  EXPECT_EQ(cache.read(key(1)), std::nullopt);
}

TEST(DiskCache, WhatIsNoEntryIsAMiss) {
  Folder f;
  DiskCache cache(f.path.string(), 1 << 20);
  for (int i = 0; i < 5; ++i) cache.write(key(i), "code");
  fs::rename(f.entry(0), f.path / "elsewhere");
  fs::create_symlink(f.path / "elsewhere", f.entry(0));
  EXPECT_EQ(cache.read(key(0)), std::nullopt) << "a link";
  fs::remove(f.entry(1));
  ASSERT_EQ(::mkfifo(f.entry(1).c_str(), 0600), 0);
  EXPECT_EQ(cache.read(key(1)), std::nullopt) << "a pipe";
  fs::remove(f.entry(2));
  fs::create_directory(f.entry(2));
  EXPECT_EQ(cache.read(key(2)), std::nullopt) << "a folder";
  fs::rename(f.entry(3), f.entry(6));
  EXPECT_EQ(cache.read(key(6)), std::nullopt) << "another's code";
  std::string bytes;
  {
    std::ifstream in(f.entry(4), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (size_t i = 0; i < bytes.size(); ++i)
    for (bool cut : {false, true}) {
      std::string wrong = cut ? bytes.substr(0, i) : bytes;
      if (!cut) wrong[i] = static_cast<char>(wrong[i] ^ 4);
      std::ofstream(f.entry(4), std::ios::binary) << wrong;
      EXPECT_EQ(cache.read(key(4)), std::nullopt) << i;
    }
}

TEST(DiskCache, RemovesWhatWasUsedLeastRecently) {
  Folder f;
  constexpr int kCount = 40;
  DiskCache cache(f.path.string(), 1 << 30);
  std::string code(8000, 'x');
  auto age = [](const fs::path& p, int days) {
    fs::last_write_time(p, fs::file_time_type::clock::now() - std::chrono::hours(24 * days));
  };
  for (int i = 0; i < kCount; ++i) {
    cache.write(key(i), code);
    age(f.entry(i), kCount - i);
  }
  ASSERT_EQ(cache.read(key(3)), code);  // which makes it the youngest
  fs::create_directory(f.path / "brasa-0123456789abcdef");
  fs::rename(f.entry(7), f.path / "brasa-0123456789abcdef" / key(7));
  fs::rename(f.entry(8), f.path / key(8));  // as the first version kept them
  std::ofstream(f.path / "mine.txt") << "not Brasa's";
  std::ofstream(f.version() / ".brasa-0123456789abcdef.tmp") << "a killed writer's";
  uint64_t all = 0;
  for (const DiskCache::Entry& e : cache.entries()) all += e.bytes;
  cache.trim(all / 2);
  uint64_t left = 0;
  for (const DiskCache::Entry& e : cache.entries()) left += e.bytes;
  EXPECT_LE(left, all / 2);
  EXPECT_GE(left, all / 3);
  EXPECT_EQ(cache.read(key(3)), code);
  for (int i : {0, 1, 5}) EXPECT_EQ(cache.read(key(i)), std::nullopt) << i;
  for (int i : {kCount - 1, kCount - 10}) EXPECT_EQ(cache.read(key(i)), code) << i;
  EXPECT_FALSE(fs::exists(f.path / "brasa-0123456789abcdef"));
  EXPECT_FALSE(fs::exists(f.path / key(8)));
  EXPECT_TRUE(fs::exists(f.path / "mine.txt"));
  EXPECT_FALSE(fs::exists(f.version() / ".brasa-0123456789abcdef.tmp"));
}

// Entries from a time that is yet to come would stay for ever, and push out each new one.
TEST(DiskCache, AClockThatWasWrong) {
  Folder f;
  DiskCache cache(f.path.string(), 1 << 30);
  std::string code(8000, 'x');
  auto tomorrow = fs::file_time_type::clock::now() + std::chrono::hours(24);
  for (int i = 0; i < 20; ++i) {
    cache.write(key(i), code);
    if (i < 10) fs::last_write_time(f.entry(i), tomorrow);
  }
  ASSERT_EQ(cache.read(key(3)), code);  // which sets its time
  uint64_t all = 0;
  for (const DiskCache::Entry& e : cache.entries()) all += e.bytes;
  cache.trim(all * 6 / 10);
  EXPECT_EQ(cache.read(key(3)), code);
  EXPECT_EQ(cache.read(key(2)), std::nullopt);
  EXPECT_EQ(cache.read(key(19)), code);
}

TEST(DiskCache, StaysBelowItsLimit) {
  Folder f;
  DiskCache cache(f.path.string(), 1 << 20);
  std::string code(30000, 'x');
  for (int i = 0; i < 200; ++i) cache.write(key(i), code);
  uint64_t all = 0;
  for (const DiskCache::Entry& e : cache.entries()) all += e.bytes;
  EXPECT_LE(all, (1u << 20) * 9 / 8);
  EXPECT_EQ(cache.read(key(199)), code);
}

TEST(DiskCache, SizesAreRead) {
  EXPECT_EQ(parse_size("300", "x"), 300u);
  EXPECT_EQ(parse_size("2G", "x"), uint64_t{2} << 30);
  for (const char* wrong : {"", "G", "-1", "1.5G", "3 K", "99999999999999999999", "18446744073709551615K", "4T"})
    EXPECT_THROW(parse_size(wrong, "x"), Error) << wrong;
}

TEST(DiskCache, Bundles) {
  Folder f;
  // A suite has a process of its own, where nothing has asked for the cache before; by hand something may have.
  ::setenv("BRASA_CACHE_DIR", f.path.c_str(), 1);
  if (!DiskCache::get().folder().starts_with(f.path.string())) GTEST_SKIP() << "the process has another cache";
  for (int i = 0; i < 20; ++i) DiskCache::get().write(key(i), "code " + key(i));
  std::string path = (f.path / "bundle").string();
  cache::save(path);
  int64_t n = cache::load(path);
  EXPECT_EQ(cache::save(path), n);
  std::string bytes;
  {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (size_t i = 0; i < bytes.size(); i += 1 + bytes.size() / 200) {
    std::string wrong = bytes;
    wrong[i] = static_cast<char>(wrong[i] ^ 1);
    std::ofstream(path, std::ios::binary) << wrong;
    EXPECT_THROW(cache::load(path), Error) << i;
    std::ofstream(path, std::ios::binary) << bytes.substr(0, i);
    EXPECT_THROW(cache::load(path), Error) << i;
  }
  for (const char* wrong : {"/dev/zero", "/", ""}) EXPECT_THROW(cache::load(wrong), Error) << wrong;
}

}  // namespace
}  // namespace brasa::compiler
