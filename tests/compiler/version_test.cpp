#include "compiler/version.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace brasa::compiler {
namespace {

namespace fs = std::filesystem;

// The script that the build runs, on sources of its own.
std::string version_of(const std::string& source, const std::string& llvm) {
  fs::path folder = fs::path(::testing::TempDir()) / "brasa_version_test";
  fs::create_directories(folder);
  std::ofstream(folder / "a.cpp") << source;
  std::ofstream(folder / "list.txt") << (folder / "a.cpp").string() << "\n";
  fs::path script = fs::path(BRASA_TEST_DATA).parent_path().parent_path() / "cmake" / "CompilerVersion.cmake";
  std::string command = "cmake -Doutput=" + (folder / "out.cpp").string() +
                        " -Dlist=" + (folder / "list.txt").string() + " -Dpipeline=" + (folder / "list.txt").string() +
                        " -Dllvm=" + llvm + " -P " + script.string();
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream in(folder / "out.cpp");
  std::string text(std::istreambuf_iterator<char>(in), {});
  fs::remove_all(folder);
  size_t at = text.find("brasa-");
  return at == std::string::npos ? "" : text.substr(at, text.find('"', at) - at);
}

TEST(Version, ChangesWithTheSourcesAndLlvm) {
  EXPECT_EQ(kCompilerVersion.size(), version_of("a", "19.1.7").size());
  EXPECT_EQ(version_of("a", "19.1.7"), version_of("a", "19.1.7"));
  EXPECT_NE(version_of("a", "19.1.7"), version_of("b", "19.1.7"));
  EXPECT_NE(version_of("a", "19.1.7"), version_of("a", "19.1.8"));
}

}  // namespace
}  // namespace brasa::compiler
