#include "support/settings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <brasa/error.h>

namespace brasa {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = fs::path(BRASA_TEST_DATA).parent_path().parent_path();

std::string content(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(Settings, ThePageIsTheTable) { EXPECT_EQ(content(kRoot / "docs/settings.md"), settings_text(true)); }

TEST(Settings, AllVariablesAreReadThroughTheTable) {
  std::set<std::string> listed, read;
  for (const Setting& s : settings())
    if (s.where == Setting::Where::Environment) listed.emplace(s.name);
  const std::regex use("environment\\(\"([A-Z_]+)\"");
  for (const char* folder : {"src", "include"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (!entry.is_regular_file()) continue;
      std::string text = content(entry.path());
      if (entry.path().filename() != "settings.cpp") {
        EXPECT_EQ(text.find("getenv"), text.npos) << entry.path();
      }
      for (std::sregex_iterator it(text.begin(), text.end(), use), end; it != end; ++it) read.insert((*it)[1]);
    }
  EXPECT_EQ(read, listed);
}

TEST(Settings, OptionsOfCompile) {
  EXPECT_NO_THROW(check_compile_option("mode", "default"));
  EXPECT_NO_THROW(check_compile_option("options[numbers]", "fast"));
  for (const char* mode : {"overhead", "", "strict"}) EXPECT_THROW(check_compile_option("mode", mode), Error) << mode;
}

}  // namespace
}  // namespace brasa
