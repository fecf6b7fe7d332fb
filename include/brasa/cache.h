#pragma once

#include <cstdint>
#include <string>

#include <brasa/export.h>

/// The compiled kernels that are kept on disk. `brasa cache` is these functions as a command.
namespace brasa::cache {

struct Usage {
  std::string folder;                      ///< empty: none are kept
  int64_t entries = 0, bytes = 0;          ///< of this version of the compiler
  int64_t old_entries = 0, old_bytes = 0;  ///< of other versions
  int64_t limit = 0;                       ///< in bytes (BRASA_CACHE_LIMIT)
};
BRASA_API Usage usage();
/// Removes what was used least recently until at most so many bytes are left.
BRASA_API void trim(int64_t bytes);
/// The kernels as one file, for another machine with the same version; the number of entries. brasa::Error if it cannot be written.
BRASA_API int64_t save(const std::string& path);
/// Adds the entries of such a file and gives their number. The code in it will be run: load only files whose writer you trust.
/// brasa::Error if it is damaged or of another version.
BRASA_API int64_t load(const std::string& path);
/// 300, 20K, 20M or 2G in bytes. brasa::Error for anything else.
BRASA_API int64_t parse_size(const std::string& text);

}  // namespace brasa::cache
