#pragma once

#include <cstdio>
#include <string>

namespace brasa::io {

/// A file beside `target` that becomes it at `commit`, so that a reader sees the old file or the whole new one. Without a commit it
/// removes itself. brasa::Error with the system's reason for what cannot be written.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(const void* data, size_t size);
  void commit();

 private:
  std::string target_, path_;
  std::FILE* file_ = nullptr;
};

}  // namespace brasa::io
