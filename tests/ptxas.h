#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace brasa::test {

/// Whether NVIDIA's assembler is installed.
inline bool have_ptxas() { return std::system("ptxas --version > /dev/null 2>&1") == 0; }

/// Whether it accepts the text with these options. The file is this process's own: other test runs may be under way.
inline bool assembles(std::string_view ptx, const std::string& options) {
  std::string path = testing::TempDir() + "/brasa_" + std::to_string(::getpid()) + ".ptx";
  std::ofstream(path) << ptx;
  bool accepted = std::system(("ptxas " + options + " -o /dev/null " + path).c_str()) == 0;
  std::remove(path.c_str());
  return accepted;
}

}  // namespace brasa::test
