#include "export/files.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "support/error.h"
#include "support/output_file.h"
#include "support/settings.h"

extern char** environ;

namespace brasa::exporting {

void write_file(const std::string& path, std::string_view bytes, mode_t mode) {
  OutputFile file(path, mode);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  BRASA_CHECK(file.good() || file.eof(), "export: ", path, " cannot be read");
  return bytes;
}

TemporaryFolder::TemporaryFolder() : path((std::filesystem::temp_directory_path() / "brasa-XXXXXX").string()) {
  BRASA_CHECK(mkdtemp(path.data()), "export: there is no folder for temporary files at ", path);
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

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
  return read_file(code);
}

}  // namespace brasa::exporting
