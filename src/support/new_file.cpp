#include "support/new_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "support/error.h"

namespace brasa {
namespace {

constexpr std::string_view kStart = ".brasa-", kEnd = ".tmp";
constexpr size_t kDigits = 16;

std::string random_name() {
  uint64_t random = 0;
  BRASA_CHECK(::getrandom(&random, sizeof random, 0) == sizeof random, "the system gives no random numbers");
  std::string digits;
  for (size_t i = 0; i < kDigits; ++i, random >>= 4) digits += "0123456789abcdef"[random & 15];
  return str(kStart, digits, kEnd);
}

bool is_random_name(std::string_view name) {
  return name.size() == kStart.size() + kDigits + kEnd.size() && name.starts_with(kStart) && name.ends_with(kEnd);
}

bool is_linked(int fd) {
  struct stat status;
  return ::fstat(fd, &status) == 0 && status.st_nlink > 0;
}

bool wants_lock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& o) noexcept {
  std::swap(fd_, o.fd_);
  return *this;
}
Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}
int Descriptor::release() { return std::exchange(fd_, -1); }

NewFile::NewFile(int folder, std::string name, mode_t mode, std::string path)
    : folder_(folder), name_(std::move(name)), path_(std::move(path)) {
  // Between its making and its lock somebody who removes leftovers may take the file for one.
  for (int tries = 0; !file_; ++tries) {
    std::string temporary = random_name();
    Descriptor fd(::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    BRASA_CHECK(fd || (errno == EEXIST && tries < 100), "cannot write ", path_, ": ", std::strerror(errno));
    if (!fd) continue;
    Descriptor lock(::openat(folder, temporary.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    BRASA_CHECK(lock || (errno == ENOENT && tries < 100), "cannot write ", path_, ": ", std::strerror(errno));
    if (!lock || wants_lock(lock.get()) || !is_linked(lock.get())) continue;
    lock_ = std::move(lock);
    temporary_ = std::move(temporary);
    file_ = ::fdopen(fd.get(), "wb");
    if (!file_) ::unlinkat(folder_, temporary_.c_str(), 0);
    BRASA_CHECK(file_, "cannot write ", path_, ": ", std::strerror(errno));
    fd.release();
  }
}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlinkat(folder_, temporary_.c_str(), 0);
  if (file_) std::fclose(file_);
}

int NewFile::descriptor() const { return ::fileno(file_); }

void NewFile::write(const void* data, size_t size) {
  BRASA_CHECK(size == 0 || std::fwrite(data, 1, size, file_) == size, "cannot write ", path_, ": ",
              std::strerror(errno));
}

void NewFile::commit(bool durable) {
  bool written = std::fflush(file_) == 0 && (!durable || ::fsync(descriptor()) == 0);
  BRASA_CHECK(written, "cannot write ", path_, ": ", std::strerror(errno));
  BRASA_CHECK(std::fclose(std::exchange(file_, nullptr)) == 0, "cannot write ", path_, ": ", std::strerror(errno));
  BRASA_CHECK(::renameat(folder_, temporary_.c_str(), folder_, name_.c_str()) == 0, "cannot write ", path_, ": ",
              std::strerror(errno));
  temporary_.clear();
  if (durable) ::fsync(folder_);  // some file systems have no such thing for folders
}

void remove_leftovers(int folder) {
  Descriptor copy(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* entries = copy ? ::fdopendir(copy.get()) : nullptr;
  if (!entries) return;
  copy.release();
  while (const dirent* entry = ::readdir(entries)) {
    if (!is_random_name(entry->d_name)) continue;
    Descriptor file(::openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status;
    if (file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
        ::flock(file.get(), LOCK_EX | LOCK_NB) == 0)
      ::unlinkat(folder, entry->d_name, 0);
  }
  ::closedir(entries);
}

}  // namespace brasa
