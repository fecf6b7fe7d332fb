// As a test program, or by hand: test_fuzz --seed 1 --count 1000 [--backend interpreter] [--seconds 60], or one program of a
// file: --program failing.txt.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>

#include "fuzz/program.h"

// Random programs may keep a gradient with the history that holds it: a cycle, which nothing frees (see docs/reliability.md).
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 1) return RUN_ALL_TESTS();
  uint32_t seed = 1, count = 100, failed = 0, refused = 0, tried = 0;
  double seconds = 1e9;
  std::string backend = "inductor", given;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--seed")) seed = static_cast<uint32_t>(std::stoul(argv[i + 1]));
    if (!std::strcmp(argv[i], "--count")) count = static_cast<uint32_t>(std::stoul(argv[i + 1]));
    if (!std::strcmp(argv[i], "--backend")) backend = argv[i + 1];
    if (!std::strcmp(argv[i], "--seconds")) seconds = std::stod(argv[i + 1]);
    if (!std::strcmp(argv[i], "--program")) given = argv[i + 1];
  }
  if (!given.empty()) {
    std::ifstream in(given);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::cout << brasa::fuzz::difference(brasa::fuzz::parse(text), backend) << "\n";
    return 0;
  }
  auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  for (uint32_t s = seed; s < seed + count && elapsed() < seconds; ++s, ++tried) {
    brasa::fuzz::Program p = brasa::fuzz::generate(s);
    std::cout << "seed " << s << "\r" << std::flush;
    refused += !brasa::fuzz::accepted(p);
    if (brasa::fuzz::difference(p, backend).empty()) continue;
    ++failed;
    p = brasa::fuzz::minimised(p, backend);
    std::cout << "seed " << s << ": " << brasa::fuzz::difference(p, backend) << "\n" << text(p) << std::endl;
  }
  std::cout << tried << " programs from seed " << seed << " (" << backend << "): " << failed << " failed, of "
            << refused << " eager ran a part, " << static_cast<int>(elapsed()) << " s" << std::endl;
  return failed != 0;
}
