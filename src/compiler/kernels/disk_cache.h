#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/new_file.h"

namespace brasa::compiler {

/// Compiled code on disk, one file an entry, in a folder for each version of the compiler under BRASA_CACHE_DIR or the user's folder
/// of caches. An entry is written to a file of its own and renamed, so that readers see all of it or nothing; torn or foreign ones are
/// misses. Code that it gives is run, so a folder that another user owns or may write to is not used.
class DiskCache {
 public:
  /// An empty folder switches it off. `limit` in bytes.
  DiskCache(std::string folder, uint64_t limit) : folder_(std::move(folder)), limit_(limit) {}
  /// brasa::Error if BRASA_CACHE_LIMIT is no size.
  static DiskCache& get();
  const std::string& folder() const { return folder_; }
  uint64_t limit() const { return limit_; }

  std::optional<std::string> read(const std::string& key) const;
  /// Failing to write is no error: the cache is only a help.
  void write(const std::string& key, std::string_view bytes) const;

  struct Entry {
    std::string version, key;
    uint64_t bytes;  // on disk
    int64_t used;    // seconds since 1970, to the hour
  };
  /// What all versions keep.
  std::vector<Entry> entries() const;
  /// Removes what was used least recently until `bytes` are left, and what other versions have not used for two weeks.
  void trim(uint64_t bytes) const;
  /// This version's entries.
  void for_each(const std::function<void(const std::string& key, const std::string& bytes)>& f) const;

 private:
  Descriptor open_folder(bool make) const;
  Descriptor open_version(const Descriptor& folder, const std::string& version, bool make) const;
  void trim_sometimes(uint64_t written, const Descriptor& version) const;

  std::string folder_;
  uint64_t limit_;
};

/// Whether an entry can have this name. Files with other names are left alone.
bool is_cache_key(std::string_view name);
/// 300, 20K, 20M or 2G. brasa::Error with `what` for anything else.
uint64_t parse_size(std::string_view text, std::string_view what);

}  // namespace brasa::compiler
