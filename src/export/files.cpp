#include "export/files.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "support/error.h"
#include "support/settings.h"

extern char** environ;

namespace brasa::exporting {

void write_file(const std::string& path, std::string_view bytes) {
  std::string temporary = path + ".new";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  bool ok = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  ok = file && std::fclose(file) == 0 && ok;
  BRASA_CHECK(ok && std::rename(temporary.c_str(), path.c_str()) == 0, "export: ", path, " cannot be written");
}

TemporaryFile::~TemporaryFile() { std::remove(path.c_str()); }

std::optional<bool> run_tool(const std::vector<std::string>& words) {
  std::vector<std::string> kept = words;
  std::vector<char*> argv;
  for (std::string& w : kept) argv.push_back(w.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  int status = 0;
  if (posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return std::nullopt;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

namespace {

// Of this call alone: other threads and programs make code at the same time.
struct TemporaryFolder {
  TemporaryFolder() : path((std::filesystem::temp_directory_path() / "brasa-XXXXXX").string()) {
    BRASA_CHECK(mkdtemp(path.data()), "export: there is no folder for temporary files at ", path);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  std::string path;
};

}  // namespace

std::string machine_code(const std::string& ptx, const std::string& architecture) {
  const char* set = environment("BRASA_PTXAS");
  std::string ptxas(set ? set : "ptxas");
  TemporaryFolder folder;
  std::string text = folder.path + "/kernels.ptx", code = folder.path + "/kernels.cubin";
  write_file(text, ptx);
  std::optional<bool> done = run_tool({ptxas, "-arch", architecture, "-o", code, text});
  if (!done) return "";
  BRASA_CHECK(*done, "export: '", ptxas, "' makes no code for ", architecture,
              "; name another by BRASA_PTXAS, or one that is not there, and the program has PTX alone");
  std::ifstream file(code, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace brasa::exporting
