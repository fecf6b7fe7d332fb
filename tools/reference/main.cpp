#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "page.h"
#include "support/error.h"

using namespace brasa;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// An unchanged file is left alone, so that its program is not compiled again.
void write(const std::filesystem::path& path, const std::string& text) {
  if (read(path) == text) return;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  BRASA_CHECK(static_cast<bool>(out.flush()), "cannot write ", path.string());
}

void write_programs(const std::filesystem::path& folder) {
  auto functions = gen::signatures(ops::table());
  for (const reference::Page& p : reference::pages_of(functions))
    write(folder / (p.slug + ".cpp"), reference::program_text(p));
}

void write_pages(const std::filesystem::path& printed, const std::filesystem::path& folder) {
  auto functions = gen::signatures(ops::table());
  std::vector<reference::Page> pages = reference::pages_of(functions);
  for (const reference::Page& p : pages)
    write(folder / (p.slug + ".md"),
          reference::page_text(p, reference::read_printed(read(printed / (p.slug + ".txt")))));
  write(folder / "index.md", reference::index_text(pages));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string_view command = argc > 1 ? argv[1] : "";
    if (command == "programs" && argc == 3)
      write_programs(argv[2]);
    else if (command == "pages" && argc == 4)
      write_pages(argv[2], argv[3]);
    else
      fail("usage: brasa-reference programs <folder> | pages <folder of what the programs printed> <folder>");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "brasa-reference: %s\n", e.what());
    return 1;
  }
}
