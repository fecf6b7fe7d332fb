#include "runtime/cuda/library.h"

#include <link.h>

#include <algorithm>
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
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> toolkit_folders() {
  const char* named = environment("CUDA_HOME");
  fs::path home = named && *named ? named : "/usr/local/cuda";
  return {home / "lib64", home / "lib"};
}

// nvidia/…/lib of the packages that belong to a Python on the PATH, or to its user.
std::vector<fs::path> python_folders() {
  std::vector<fs::path> libraries;
  std::error_code none;
  for (const fs::path& bin : listed(environment("PATH"))) {
    if (!fs::exists(bin / "python3", none)) continue;
    libraries.push_back(bin.parent_path() / "lib");
    // Where a distribution's own Python keeps what its user installs for all.
    if (bin == "/usr/bin") libraries.emplace_back("/usr/local/lib");
  }
  if (const char* home = environment("HOME"); home && *home) libraries.push_back(fs::path(home) / ".local" / "lib");
  std::vector<fs::path> out;
  for (const fs::path& library : libraries)
    for (const fs::path& python : inside(library)) {
      if (!python.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"})
        for (const fs::path& part : inside(python / packages / "nvidia")) out.push_back(part / "lib");
    }
  return out;
}

class Search {
 public:
  explicit Search(std::span<const char* const> names) : names_(names) {}

  bool by_name(int how, std::string_view place) {
    return std::any_of(names_.begin(), names_.end(), [&](const char* name) { return open(name, how, place); });
  }
  // A file that is there and cannot be loaded is passed over: what it needs may be missing.
  bool in(const std::vector<fs::path>& folders, std::string_view place) {
    std::error_code none;
    for (const fs::path& folder : folders)
      for (const char* name : names_)
        if (fs::exists(folder / name, none) && open((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL, place)) return true;
    return false;
  }
  Library found;

 private:
  bool open(const char* file, int how, std::string_view place) {
    void* library = dlopen(file, how);
    if (!library) {
      if (how & RTLD_NOLOAD) return false;
      found.why_not += str(found.why_not.empty() ? "" : "; ", dlerror());
      return false;
    }
    link_map* map = nullptr;
    bool known = dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map->l_name && *map->l_name;
    found = {library, known ? map->l_name : file, place, ""};
    return true;
  }
  std::span<const char* const> names_;
};

}  // namespace

Library open_library(std::span<const char* const> names) {
  Search s(names);
  (void)(s.in(listed(environment("BRASA_CUDA_LIBRARIES")), "BRASA_CUDA_LIBRARIES") ||
         s.by_name(RTLD_NOW | RTLD_NOLOAD, "loaded already") ||
         s.by_name(RTLD_NOW | RTLD_LOCAL, "the system's search") || s.in(toolkit_folders(), "CUDA_HOME") ||
         s.in(python_folders(), "packages of a Python"));
  return s.found;
}

}  // namespace brasa::runtime::cuda
