#include "compiler/kernels/disk_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "support/hash.h"
#include "support/settings.h"
#include "support/str.h"

namespace brasa::compiler {
namespace {

struct Header {
  char magic[8];
  uint64_t checksum;
};
constexpr char kMagic[8] = {'B', 'R', 'A', 'S', 'A', 'C', '0', '1'};

std::string default_folder() {
  if (const char* dir = environment("BRASA_CACHE_DIR")) return dir;
  if (const char* dir = environment("XDG_CACHE_HOME"); dir && *dir) return std::string(dir) + "/brasa";
  if (const char* home = environment("HOME"); home && *home) return std::string(home) + "/.cache/brasa";
  return "";
}

bool make_folders(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at)
    if (at == path.size() || path[at] == '/')
      if (::mkdir(path.substr(0, at).c_str(), 0777) != 0 && errno != EEXIST) return false;
  return true;
}

}  // namespace

DiskCache& DiskCache::get() {
  static DiskCache* cache = new DiskCache(default_folder());
  return *cache;
}

std::optional<std::string> DiskCache::read(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::FILE* file = std::fopen((folder_ + "/" + key).c_str(), "rb");
  if (!file) return std::nullopt;
  std::string bytes;
  char buffer[1 << 14];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) bytes.append(buffer, n);
  std::fclose(file);
  Header h;
  if (bytes.size() < sizeof h) return std::nullopt;
  std::memcpy(&h, bytes.data(), sizeof h);
  bytes.erase(0, sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0 || h.checksum != hash_bytes(bytes)) return std::nullopt;
  return bytes;
}

void DiskCache::write(const std::string& key, std::string_view bytes) const {
  static std::atomic<uint64_t> count{0};
  if (folder_.empty() || !make_folders(folder_)) return;
  std::string path = folder_ + "/" + key;
  std::string temporary = str(path, ".", static_cast<int64_t>(::getpid()), ".", count.fetch_add(1));
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) return;
  Header h;
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.checksum = hash_bytes(bytes);
  bool ok = std::fwrite(&h, sizeof h, 1, file) == 1 && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  ok = std::fclose(file) == 0 && ok;
  if (!ok || std::rename(temporary.c_str(), path.c_str()) != 0) std::remove(temporary.c_str());
}

}  // namespace brasa::compiler
