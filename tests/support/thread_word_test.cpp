#include "support/thread_word.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace brasa {
namespace {

// What a library has of each thread lies in one block, words and all. A program that loads the library late has 1.6 KB for such blocks.
TEST(ThreadWord, TheLibraryFitsWhereItIsLoadedLate) {
  const char* beside = std::getenv("BRASA_CODEGEN");
  std::filesystem::path path = std::filesystem::path(beside ? beside : "").replace_filename("libbrasa.so");
  std::ifstream file(path, std::ios::binary);
  if (!file) GTEST_SKIP() << path << " is not built";
  Elf64_Ehdr header;
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  file.read(reinterpret_cast<char*>(segments.data()),
            static_cast<std::streamsize>(segments.size() * sizeof(Elf64_Phdr)));
  for (const Elf64_Phdr& s : segments)
    EXPECT_TRUE(s.p_type != PT_TLS || s.p_memsz <= 1024)
        << s.p_memsz << " bytes: large objects of a thread belong into a ThreadObject";
}

}  // namespace
}  // namespace brasa
