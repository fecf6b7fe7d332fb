#include "support/source_line.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>

#include "support/lazy.h"
#include "support/mutex.h"
#include "support/str.h"

namespace brasa {
namespace {

// "train.cpp:31"; addr2line writes ":0" or ":?" where it does not know.
bool has_line(const std::string& file) {
  size_t colon = file.rfind(':');
  return colon != file.npos && std::atoi(file.c_str() + colon + 1) > 0;
}

// Brasa's own code, and the templates of its headers and of the standard library's.
bool is_own(const std::string& function, const std::string& file) {
  auto has = [&](const char* part) { return file.find(part) != file.npos; };
  if (has("/include/brasa/") || has("/include/c++/")) return true;
  if (!has_line(file))
    return function[0] == '?' || function.rfind("brasa::", 0) == 0 || function.rfind("std::", 0) == 0;
  return has("/src/") && function.find("brasa::") != function.npos;
}

std::string quoted(const std::string& s) {
  std::string out = "'";
  for (char c : s) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

struct Frame {
  std::string function, file;  // "train.cpp:31", with its folders
};

// Inlined calls are frames of their own, inner ones first.
std::vector<Frame> frames_at(const std::string& module, uintptr_t offset) {
  std::vector<Frame> out;
  char address[32];
  std::snprintf(address, sizeof address, "%#zx", static_cast<size_t>(offset));
  std::string command = str("addr2line -Cfie ", quoted(module), " ", std::string(address), " 2>/dev/null");
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  auto line = [&](std::string& text) {
    char* data = nullptr;
    size_t size = 0;
    ssize_t n = pipe ? ::getline(&data, &size, pipe.get()) : -1;
    text.assign(data ? data : "", n > 0 ? static_cast<size_t>(n - 1) : 0);
    std::free(data);
    return n > 0;
  };
  for (Frame f; line(f.function) && line(f.file);) {
    if (size_t note = f.file.find(" (discriminator"); note != f.file.npos) f.file.resize(note);
    out.push_back(f);
  }
  return out;
}

std::string own_program() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).string();
}

std::string demangled(const char* name) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

// What is at an address does not change; to find it takes a process.
const std::vector<Frame>& frames_at(void* address) {
  static constinit Mutex mutex;
  static constinit Lazy<std::map<void*, std::vector<Frame>>> known;
  std::lock_guard lock(mutex);
  auto [it, fresh] = known->try_emplace(address);
  Dl_info info{};
  link_map* map = nullptr;
  if (!fresh || !::dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map) return it->second;
  std::string module = map->l_name && *map->l_name ? map->l_name : own_program();
  // The call lies before the address to return to.
  it->second = frames_at(module, reinterpret_cast<uintptr_t>(address) - 1 - map->l_addr);
  if (it->second.empty() && info.dli_sname) it->second.push_back({demangled(info.dli_sname), "??:0"});
  return it->second;
}

}  // namespace

std::vector<void*> call_stack() {
  constexpr int kFrames = 64;
  std::vector<void*> out(kFrames);
  out.resize(static_cast<size_t>(::backtrace(out.data(), kFrames)));
  return out;
}

std::string users_line(const std::vector<void*>& stack) {
  for (void* address : stack)
    for (const Frame& f : frames_at(address)) {
      if (is_own(f.function, f.file)) continue;
      return has_line(f.file) ? str(f.file.substr(f.file.rfind('/') + 1), " in ", f.function) : f.function;
    }
  return "";
}

std::string at_users_line() {
  std::string line = users_line(call_stack());
  size_t colon = line.find(':');
  bool numbered = colon != line.npos && colon + 1 < line.size() && line[colon + 1] >= '0' && line[colon + 1] <= '9';
  return numbered ? ", at " + line : "";
}

}  // namespace brasa
