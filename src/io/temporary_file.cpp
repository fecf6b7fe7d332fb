#include "io/temporary_file.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "support/error.h"

namespace brasa::io {

TemporaryFile::TemporaryFile(const std::string& target) : target_(target) {
  static std::atomic<unsigned> count{0};
  path_ = str(target, ".", static_cast<int64_t>(::getpid()), ".", static_cast<uint64_t>(count++), ".tmp");
  file_ = std::fopen(path_.c_str(), "wbx");
  BRASA_CHECK(file_, "cannot write ", target_, ": ", std::strerror(errno));
}

TemporaryFile::~TemporaryFile() {
  if (file_) std::fclose(file_);
  if (!path_.empty()) std::remove(path_.c_str());
}

void TemporaryFile::write(const void* data, size_t size) {
  BRASA_CHECK(size == 0 || std::fwrite(data, 1, size, file_) == size, "cannot write ", target_, ": ",
              std::strerror(errno));
}

void TemporaryFile::commit() {
  bool flushed = std::fflush(file_) == 0 && ::fsync(::fileno(file_)) == 0;
  int reason = errno;
  bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  BRASA_CHECK(flushed && closed, "cannot write ", target_, ": ", std::strerror(flushed ? errno : reason));
  BRASA_CHECK(std::rename(path_.c_str(), target_.c_str()) == 0, "cannot write ", target_, ": ", std::strerror(errno));
  path_.clear();
}

}  // namespace brasa::io
