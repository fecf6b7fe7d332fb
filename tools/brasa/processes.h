#pragma once

#include <filesystem>
#include <string>

namespace brasa::tool {

/// A folder of its own that goes with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// As one word for the shell.
std::string quoted(const std::string& text);
/// This program's file.
std::filesystem::path this_program();

/// What a command of the shell wrote, and how it ended.
struct Finished {
  std::string out;
  int status = 0;               ///< its exit status; -n if signal n ended it
  std::string failure() const;  ///< "ended by signal 11", "failed with exit status 1"
};
/// The command's error stream is this program's.
Finished run_command(const std::string& command);

}  // namespace brasa::tool
