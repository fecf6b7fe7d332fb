#include "compiler/kernels/disk_cache.h"

#include <brasa/warning.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>

#include "compiler/version.h"
#include "support/error.h"
#include "support/hash.h"
#include "support/lazy.h"
#include "support/settings.h"

namespace brasa::compiler {
namespace {

struct Header {
  char magic[8];
  uint64_t checksum;
};
constexpr char kMagic[8] = {'B', 'R', 'A', 'S', 'A', 'C', '0', '2'};
constexpr uint64_t kDefaultLimit = uint64_t{2} << 30, kMostBytes = uint64_t{1} << 30;
constexpr int64_t kHour = 3600, kDay = 24 * kHour, kForgotten = 14 * kDay;
constexpr const char* kStamp = ".trimmed";  // its time says when the folder was last looked through

std::string default_folder() {
  if (const char* dir = environment("BRASA_CACHE_DIR")) return dir;
  if (const char* dir = environment("XDG_CACHE_HOME"); dir && *dir) return std::string(dir) + "/brasa";
  if (const char* home = environment("HOME"); home && *home) return std::string(home) + "/.cache/brasa";
  return "";
}

bool make_folders(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at)
    if (at == path.size() || path[at] == '/')
      if (::mkdir(path.substr(0, at).c_str(), 0700) != 0 && errno != EEXIST) return false;
  return true;
}

bool is_hash(std::string_view s) { return s.size() == 32 && s.find_first_not_of("0123456789abcdef") == s.npos; }
bool is_version(std::string_view name) { return name.starts_with("brasa-"); }

// Whether only this user can change it.
bool is_own(const struct stat& status) { return status.st_uid == ::geteuid() && (status.st_mode & 022) == 0; }
bool is_own(int fd, mode_t kind) {
  struct stat status;
  return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == kind && is_own(status);
}

void warn_once(const std::string& folder) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    Warning::warn({__func__, __FILE__, __LINE__},
                  str("compiled kernels are not kept, because others may write to the folder '", folder,
                      "': make it this user's alone (chmod 700), or name another one in BRASA_CACHE_DIR"),
                  true);
}

uint64_t checksum(std::string_view key, std::string_view bytes) { return hash_bytes(bytes, hash_bytes(key)); }

int64_t now() { return static_cast<int64_t>(std::time(nullptr)); }
// When a file was used last. A time that is yet to come is of a clock that was wrong: it says nothing.
int64_t time_of(const struct stat& status) { return status.st_mtime > now() + kHour ? 0 : status.st_mtime; }

template <class F>
void each_name(int folder, F f) {
  int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = copy >= 0 ? ::fdopendir(copy) : nullptr;
  if (!entries) return;
  while (const dirent* entry = ::readdir(entries)) f(std::string(entry->d_name));
  ::closedir(entries);
}

}  // namespace

bool is_cache_key(std::string_view name) {
  constexpr std::string_view kImage = ".image";
  if (name.starts_with('k') || name.starts_with('g') || name.starts_with('t')) return is_hash(name.substr(1));
  return name.ends_with(kImage) && is_hash(name.substr(0, name.size() - kImage.size()));
}

uint64_t parse_size(std::string_view text, std::string_view what) {
  uint64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  constexpr std::string_view kUnits = "KMG";
  size_t power = unit.size() == 1 ? kUnits.find(unit[0]) + 1 : 0;
  BRASA_CHECK(error == std::errc() && (unit.empty() || power > 0) && n <= UINT64_MAX >> (10 * power), what,
              " must be a number of bytes, perhaps with K, M or G behind it, got '", text, "'");
  return n << (10 * power);
}

DiskCache& DiskCache::get() {
  static constinit Lazy<DiskCache> cache([] {
    const char* limit = environment("BRASA_CACHE_LIMIT");
    return DiskCache(default_folder(), limit ? parse_size(limit, "BRASA_CACHE_LIMIT") : kDefaultLimit);
  });
  return *cache;
}

Descriptor DiskCache::open_folder(bool make) const {
  if (folder_.empty()) return Descriptor();
  if (make) make_folders(folder_);
  Descriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && !is_own(folder.get(), S_IFDIR)) {
    warn_once(folder_);
    return Descriptor();
  }
  return folder;
}

Descriptor DiskCache::open_version(const Descriptor& folder, const std::string& version, bool make) const {
  if (!folder) return Descriptor();
  if (make) ::mkdirat(folder.get(), version.c_str(), 0700);
  Descriptor fd(::openat(folder.get(), version.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return fd && is_own(fd.get(), S_IFDIR) ? std::move(fd) : Descriptor();
}

std::optional<std::string> DiskCache::read(const std::string& key) const {
  if (!is_cache_key(key)) return std::nullopt;
  Descriptor folder = open_version(open_folder(false), std::string(kCompilerVersion), false);
  if (!folder) return std::nullopt;
  Descriptor file(::openat(folder.get(), key.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  Header h;
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || !is_own(status) ||
      status.st_size < static_cast<off_t>(sizeof h) || static_cast<uint64_t>(status.st_size) > kMostBytes)
    return std::nullopt;
  std::string bytes(static_cast<size_t>(status.st_size), 0);
  for (size_t at = 0; at < bytes.size();) {
    ssize_t n = ::read(file.get(), bytes.data() + at, bytes.size() - at);
    if (n <= 0) return std::nullopt;
    at += static_cast<size_t>(n);
  }
  std::memcpy(&h, bytes.data(), sizeof h);
  bytes.erase(0, sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0 || h.checksum != checksum(key, bytes)) return std::nullopt;
  if (time_of(status) < now() - kHour) ::futimens(file.get(), nullptr);
  return bytes;
}

void DiskCache::write(const std::string& key, std::string_view bytes) const {
  BRASA_ASSERT(is_cache_key(key), key);
  Descriptor folder = open_version(open_folder(true), std::string(kCompilerVersion), true);
  if (!folder) return;
  Header h;
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.checksum = checksum(key, bytes);
  try {
    NewFile file(folder.get(), key, 0600, key);
    file.write(&h, sizeof h);
    file.write(bytes.data(), bytes.size());
    file.commit(/*durable=*/false);
  } catch (const Error&) {
    return;
  }
  trim_sometimes(sizeof h + bytes.size(), folder);
}

// Once a day, and after every sixteenth part of the limit that this process has written.
void DiskCache::trim_sometimes(uint64_t written, const Descriptor& version) const {
  static std::atomic<uint64_t> since{0};
  static std::atomic<bool> looked{false};
  struct stat stamp;
  bool late = !looked.exchange(true) &&
              (::fstatat(version.get(), kStamp, &stamp, AT_SYMLINK_NOFOLLOW) != 0 || time_of(stamp) < now() - kDay);
  if (since.fetch_add(written) + written < limit_ / 16 && !late) return;
  since = 0;
  Descriptor file(::openat(version.get(), kStamp, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (file) ::futimens(file.get(), nullptr);
  trim(limit_);
}

std::vector<DiskCache::Entry> DiskCache::entries() const {
  std::vector<Entry> out;
  Descriptor folder = open_folder(false);
  if (!folder) return out;
  auto add = [&](int fd, const std::string& version, const std::string& name) {
    struct stat status;
    if (is_cache_key(name) && ::fstatat(fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
      out.push_back({version, name, static_cast<uint64_t>(status.st_blocks) * 512, time_of(status)});
  };
  each_name(folder.get(), [&](const std::string& name) {
    // The first version kept its entries here.
    if (!is_version(name)) return add(folder.get(), "", name);
    Descriptor version = open_version(folder, name, false);
    if (version) each_name(version.get(), [&](const std::string& key) { add(version.get(), name, key); });
  });
  return out;
}

void DiskCache::trim(uint64_t bytes) const {
  Descriptor folder = open_folder(false);
  if (!folder) return;
  std::vector<Entry> all = entries();
  std::stable_sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  uint64_t total = 0;
  for (const Entry& e : all) total += e.bytes;
  // Below the limit, so that the next entry does not bring the next search.
  uint64_t room = total > bytes ? bytes - bytes / 8 : bytes;
  for (const Entry& e : all) {
    if (total <= room && (e.version == kCompilerVersion || e.used >= now() - kForgotten)) continue;
    ::unlinkat(folder.get(), (e.version.empty() ? e.key : e.version + "/" + e.key).c_str(), 0);
    total -= std::min(total, e.bytes);
  }
  each_name(folder.get(), [&](const std::string& name) {
    if (!is_version(name)) return;
    Descriptor version = open_version(folder, name, false);
    if (!version) return;
    remove_leftovers(version.get());
    bool empty = true;
    each_name(version.get(), [&](const std::string& key) { empty = empty && !is_cache_key(key); });
    if (!empty || name == kCompilerVersion) return;
    ::unlinkat(version.get(), kStamp, 0);
    ::unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR);
  });
}

void DiskCache::for_each(const std::function<void(const std::string& key, const std::string& bytes)>& f) const {
  for (const Entry& e : entries())
    if (e.version == kCompilerVersion)
      if (auto bytes = read(e.key)) f(e.key, *bytes);
}

}  // namespace brasa::compiler
