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

MappedFile map_file(const std::string& path) {
  check_path(path);
  // A pipe without a writer must not hold the caller up.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  BRASA_CHECK(file, "cannot open ", path, ": ", std::strerror(errno));
  struct stat status;
  BRASA_CHECK(::fstat(file.get(), &status) == 0, "cannot read ", path, ": ", std::strerror(errno));
  BRASA_CHECK(S_ISREG(status.st_mode), "cannot read ", path, ": it is not a regular file");
  size_t size = static_cast<size_t>(status.st_size);
  if (size == 0) return {};
  void* p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get(), 0);
  BRASA_CHECK(p != MAP_FAILED, "cannot map ", path, ": ", std::strerror(errno));
  std::shared_ptr<const void> owner(p, [size](const void* q) { ::munmap(const_cast<void*>(q), size); });
  return {{static_cast<const std::byte*>(p), size}, std::move(owner)};
}

}  // namespace brasa
