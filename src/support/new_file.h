#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>

namespace brasa {

/// A descriptor that closes itself; -1 for none.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(o.release()) {}
  Descriptor& operator=(Descriptor&& o) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  int release();
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// A file on its way: written in its folder under a random name, which becomes its own at `commit`, so that readers see the old file
/// or the whole new one. It is locked while its writer lives. Without a commit it removes itself. brasa::Error with the system's reason
/// for what cannot be written.
class NewFile {
 public:
  /// `folder` is open, and stays so. `mode` as for open(2). `path` is what errors call it.
  NewFile(int folder, std::string name, mode_t mode, std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int descriptor() const;
  void write(const void* data, size_t size);
  /// `durable`: nothing is lost either if the machine stops right after.
  void commit(bool durable);

 private:
  int folder_;
  std::string name_, path_, temporary_;
  std::FILE* file_ = nullptr;
  Descriptor lock_;  // reads: what is open for writing cannot be executed
};

/// Removes what writers that were killed left in the folder: this user's files with names of `NewFile` that nobody has locked.
void remove_leftovers(int folder);

}  // namespace brasa
