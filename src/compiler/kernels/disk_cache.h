#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/image.h"

namespace brasa::compiler {

/// Compiled code on disk: one file an entry, under BRASA_CACHE_DIR, or the user's cache folder. An entry is written to a file
/// of its own and renamed, so that readers see all of it or nothing; torn or foreign ones are misses.
class DiskCache {
 public:
  /// An empty folder switches it off.
  explicit DiskCache(std::string folder) : folder_(std::move(folder)) {}
  static DiskCache& get();
  const std::string& folder() const { return folder_; }

  std::optional<std::string> read(const std::string& key) const;
  /// Failing to write is no error: the cache is only a help.
  void write(const std::string& key, std::string_view bytes) const;

 private:
  std::string folder_;
};

}  // namespace brasa::compiler
