#include <brasa/cache.h>

#include <cstring>

#include "compiler/kernels/disk_cache.h"
#include "compiler/version.h"
#include "support/byte_reader.h"
#include "support/error.h"
#include "support/hash.h"
#include "support/mapped_file.h"
#include "support/output_file.h"

namespace brasa::cache {
namespace {

using compiler::DiskCache;
using compiler::kCompilerVersion;

// A bundle: this line and the version, then for each entry the sizes of key and bytes, key and bytes, then a checksum of all.
constexpr std::string_view kMagic = "Brasa's compiled kernels 1\n";

std::string start() { return str(kMagic, kCompilerVersion, "\n"); }

void put(std::string& out, uint64_t n) { out.append(reinterpret_cast<const char*>(&n), sizeof n); }

}  // namespace

Usage usage() {
  const DiskCache& cache = DiskCache::get();
  Usage out{cache.folder(), 0, 0, 0, 0, static_cast<int64_t>(cache.limit())};
  for (const DiskCache::Entry& e : cache.entries()) {
    bool present = e.version == kCompilerVersion;
    ++(present ? out.entries : out.old_entries);
    (present ? out.bytes : out.old_bytes) += static_cast<int64_t>(e.bytes);
  }
  return out;
}

void trim(int64_t bytes) {
  BRASA_CHECK(bytes >= 0, "cache: a size must not be negative, got ", bytes);
  DiskCache::get().trim(static_cast<uint64_t>(bytes));
}

int64_t save(const std::string& path) {
  std::string out = start();
  int64_t count = 0;
  DiskCache::get().for_each([&](const std::string& key, const std::string& bytes) {
    put(out, key.size());
    put(out, bytes.size());
    out += key + bytes;
    ++count;
  });
  put(out, hash_bytes(out));
  OutputFile file(path);
  file.write(out.data(), out.size());
  file.commit();
  return count;
}

int64_t load(const std::string& path) {
  MappedFile file = map_file(path);
  std::string_view bytes(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  BRASA_CHECK(bytes.starts_with(kMagic), path, ": no file of Brasa's compiled kernels");
  BRASA_CHECK(bytes.starts_with(start()), path, ": kernels of another version of Brasa's compiler");
  std::string_view rest = bytes;
  uint64_t sum;
  BRASA_CHECK(rest.size() >= start().size() + sizeof sum, path, ": the file is damaged: it ends too early");
  std::memcpy(&sum, rest.data() + rest.size() - sizeof sum, sizeof sum);
  rest.remove_suffix(sizeof sum);
  BRASA_CHECK(sum == hash_bytes(rest), path, ": the file is damaged: its checksum is wrong");
  ByteReader in(rest.substr(start().size()), path + ": the file is damaged: it ends too early");
  int64_t count = 0;
  for (; in.left() > 0; ++count) {
    auto key_size = in.number<uint64_t>();
    auto size = in.number<uint64_t>();
    std::string key(in.take(key_size));
    BRASA_CHECK(compiler::is_cache_key(key), path, ": '", key, "' is no name of a kernel");
    DiskCache::get().write(key, in.take(size));
  }
  return count;
}

int64_t parse_size(const std::string& text) {
  uint64_t n = compiler::parse_size(text, "a size");
  BRASA_CHECK(n <= INT64_MAX, "a size of ", n, " bytes is too large");
  return static_cast<int64_t>(n);
}

}  // namespace brasa::cache
