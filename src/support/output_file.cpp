#include "support/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "support/error.h"

namespace brasa {
namespace {

struct Place {
  std::string folder, name;
};

Place split(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

// Where the links lead, to the end also of those whose file is not there yet.
Place followed(std::string path) {
  constexpr int kMostLinks = 40;
  for (int links = 0; links < kMostLinks; ++links) {
    char target[PATH_MAX];
    ssize_t n = ::readlink(path.c_str(), target, sizeof target);
    if (n < 0) return split(path);
    std::string to(target, static_cast<size_t>(n));
    path = to.starts_with('/') ? to : split(path).folder + "/" + to;
  }
  fail(str("cannot write ", path, ": ", std::strerror(ELOOP)));
}

// Files that have lost their name, or never had one, are reached through /proc alone, where links lead to what is no path.
bool is_at(const struct stat& file, const Place& place) {
  struct stat there;
  return ::lstat((place.folder + "/" + place.name).c_str(), &there) == 0 && there.st_dev == file.st_dev &&
         there.st_ino == file.st_ino;
}

// Whether this user may put another file in place of this one.
bool may_replace(const struct stat& file, const std::string& folder) {
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return false;
  struct stat in;
  if (::stat(folder.c_str(), &in) != 0 || !(in.st_mode & S_ISVTX)) return true;
  uid_t self = ::geteuid();
  return self == 0 || self == file.st_uid || self == in.st_uid;
}

// What a file cannot keep its owner with, nobody else may do with it either.
void keep_owner_and_mode(int fd, const struct stat& old) {
  mode_t mode = old.st_mode & 07777;
  struct stat now;
  if (::fstat(fd, &now) != 0) return;
  bool same = now.st_uid == old.st_uid && now.st_gid == old.st_gid;
  if (!same && ::fchown(fd, old.st_uid, old.st_gid) != 0) {
    mode &= 0777;
    if (::fchown(fd, static_cast<uid_t>(-1), old.st_gid) != 0) mode &= ~070 | (mode & 07) << 3;
  }
  ::fchmod(fd, mode);
}

}  // namespace

void check_path(const std::string& path) {
  BRASA_CHECK(!path.empty(), "a file was expected, but the path is empty");
  size_t nul = path.find('\0');
  BRASA_CHECK(nul == std::string::npos, "the path '", path.substr(0, nul), "' goes on behind a NUL");
}

OutputFile::OutputFile(const std::string& path, mode_t mode) : path_(path) {
  check_path(path);
  struct stat old;
  bool exists = ::stat(path.c_str(), &old) == 0;
  BRASA_CHECK(exists || errno == ENOENT, "cannot write ", path, ": ", std::strerror(errno));
  BRASA_CHECK(!exists || !S_ISDIR(old.st_mode), "cannot write ", path, ": ", std::strerror(EISDIR));
  Place place = followed(path);
  // Others may replace the file between two looks at it; one without a name stays without.
  bool named = false;
  for (int looks = 0; exists && !(named = is_at(old, place)) && looks < 100; ++looks)
    exists = ::stat(path.c_str(), &old) == 0;
  if (exists && !(S_ISREG(old.st_mode) && named && may_replace(old, place.folder))) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    direct_ = file ? ::fdopen(file.get(), "wb") : nullptr;
    BRASA_CHECK(direct_, "cannot write ", path, ": ", std::strerror(errno));
    file.release();
    return;
  }
  BRASA_CHECK(!exists || ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0, "cannot write ", path, ": ",
              std::strerror(errno));
  folder_ = Descriptor(::open(place.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  BRASA_CHECK(folder_ && !place.name.empty(), "cannot write ", path, ": ", std::strerror(folder_ ? EISDIR : errno));
  remove_leftovers(folder_.get());
  replacing_ = std::make_unique<NewFile>(folder_.get(), place.name, exists ? 0600 : mode, path);
  if (!exists) return;
  old.st_mode |= mode & 0111 & (old.st_mode & 0444) >> 2;  // by those who may read it
  keep_owner_and_mode(replacing_->descriptor(), old);
}

OutputFile::~OutputFile() {
  if (direct_) std::fclose(direct_);
}

void OutputFile::write(const void* data, size_t size) {
  if (replacing_) return replacing_->write(data, size);
  BRASA_CHECK(size == 0 || std::fwrite(data, 1, size, direct_) == size, "cannot write ", path_, ": ",
              std::strerror(errno));
}

void OutputFile::commit() {
  if (replacing_) return replacing_->commit(/*durable=*/true);
  BRASA_CHECK(std::fclose(std::exchange(direct_, nullptr)) == 0, "cannot write ", path_, ": ", std::strerror(errno));
}

}  // namespace brasa
