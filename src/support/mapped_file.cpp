#include "support/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/error.h"
#include "support/new_file.h"
#include "support/output_file.h"

namespace brasa {

namespace {

size_t bytes_of(const Descriptor& file, const std::string& path) {
  BRASA_CHECK(file, "cannot open ", path, ": ", std::strerror(errno));
  struct stat status;
  BRASA_CHECK(::fstat(file.get(), &status) == 0, "cannot read ", path, ": ", std::strerror(errno));
  BRASA_CHECK(S_ISREG(status.st_mode), "cannot read ", path, ": it is not a regular file");
  return static_cast<size_t>(status.st_size);
}

MappedFile map(const Descriptor& file, const std::string& path, size_t bytes, int flags) {
  if (bytes == 0) return {};
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file.get(), 0);
  BRASA_CHECK(p != MAP_FAILED, "cannot map ", path, ": ", std::strerror(errno));
  std::shared_ptr<const void> owner(p, [bytes](const void* q) { ::munmap(const_cast<void*>(q), bytes); });
  return {{static_cast<const std::byte*>(p), bytes}, std::move(owner)};
}

// A pipe without a writer must not hold the caller up.
constexpr int kOpen = O_NONBLOCK | O_CLOEXEC;

}  // namespace

MappedFile map_file(const std::string& path) {
  check_path(path);
  Descriptor file(::open(path.c_str(), O_RDONLY | kOpen));
  return map(file, path, bytes_of(file, path), MAP_PRIVATE);
}

MappedFile map_shared_file(const std::string& path, size_t bytes) {
  check_path(path);
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | kOpen, 0600));
  if (bytes_of(file, path) < bytes)
    BRASA_CHECK(::ftruncate(file.get(), static_cast<off_t>(bytes)) == 0, "cannot write ", path, ": ",
                std::strerror(errno));
  return map(file, path, bytes, MAP_SHARED);
}

}  // namespace brasa
