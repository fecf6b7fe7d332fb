#include "processes.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include <brasa/error.h>

namespace brasa::tool {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::string pattern = (fs::temp_directory_path() / "brasa-bench-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) throw Error("cannot make a folder in " + fs::temp_directory_path().string());
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

std::string Finished::failure() const {
  return status < 0 ? fmt::format("ended by signal {}", -status) : fmt::format("failed with exit status {}", status);
}

Finished run_command(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) throw Error("cannot start a process");
  Finished out;
  char buffer[4096];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, pipe.get())) out.out.append(buffer, n);
  int status = ::pclose(pipe.release());
  // The shell adds 128 to the signal that ended what it started.
  int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  out.status = code > 128 ? 128 - code : code;
  return out;
}

}  // namespace brasa::tool
