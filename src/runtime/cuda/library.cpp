#include "runtime/cuda/library.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "support/settings.h"
#include "support/str.h"

namespace brasa::runtime::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> listed(const char* text) {
  std::vector<fs::path> out;
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    size_t end = std::min(rest.find(':'), rest.size());
    if (end) out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

std::vector<fs::path> inside(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code none;
  for (const fs::directory_entry& e : fs::directory_iterator(folder, none)) out.push_back(e.path());
  return out;
}

// nvidia/…/lib of the packages that belong to a Python on the PATH.
std::vector<fs::path> python_folders() {
  std::vector<fs::path> out;
  std::error_code none;
  for (const fs::path& bin : listed(environment("PATH"))) {
    if (!fs::exists(bin / "python3", none)) continue;
    for (const fs::path& python : inside(bin.parent_path() / "lib")) {
      if (!python.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"})
        for (const fs::path& part : inside(python / packages / "nvidia")) out.push_back(part / "lib");
    }
  }
  return out;
}

void* open_in(const std::vector<fs::path>& folders, std::span<const char* const> names) {
  std::error_code none;
  for (const fs::path& folder : folders)
    for (const char* name : names)
      if (fs::exists(folder / name, none))
        if (void* library = dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

}  // namespace

void* open_library(std::span<const char* const> names, std::string& why_not) {
  if (void* library = open_in(listed(environment("BRASA_CUDA_LIBRARIES")), names)) return library;
  for (int how : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL})
    for (const char* name : names)
      if (void* library = dlopen(name, how)) return library;
  why_not = dlerror();
  if (const char* home = environment("CUDA_HOME"))
    if (void* library = open_in({fs::path(home) / "lib64", fs::path(home) / "lib"}, names)) return library;
  return open_in(python_folders(), names);
}

}  // namespace brasa::runtime::cuda
