#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "support/new_file.h"

namespace brasa {

/// The file that a path names, written anew. A regular file is replaced at `commit`, with its mode and owner, where links lead to it;
/// whatever else there is (a pipe, a device, a file without a name, a file in a folder where this user may replace nothing) is written
/// directly. brasa::Error with the system's reason for what cannot be written.
class OutputFile {
 public:
  /// `mode` of a new file, as for open(2). One that is replaced keeps its own, and may be executed if `mode` says so.
  explicit OutputFile(const std::string& path, mode_t mode = 0666);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, size_t size);
  void commit();

 private:
  std::string path_;
  Descriptor folder_;
  std::unique_ptr<NewFile> replacing_;
  std::FILE* direct_ = nullptr;
};

/// brasa::Error for a path that is empty or holds a NUL, which the system would take for its end.
void check_path(const std::string& path);

}  // namespace brasa
