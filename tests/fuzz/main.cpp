// As a test program, or by hand: test_fuzz --seed 1 --count 1000 [--backend interpreter] [--seconds 60], or one program of a
// file: --program failing.txt. With --pace 1 programs are timed in turn as they are and compiled. With --sizes 1 each program is called at five sizes. With --target NAME (or "all") bytes for a reader: readers/targets.cpp lists them; --first N begins with
// input N, and --keep FILE writes each input before it is read, for one that crashes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <thread>
#include <tuple>

#include "fuzz/program.h"
#include "fuzz/readers/target.h"

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// False if an input did something else than it may.
bool read_mutated(const brasa::fuzz::Target& t, uint32_t seed, uint32_t first, uint32_t count, double seconds,
                  const std::string& keep) {
  Clock::time_point start = Clock::now();
  uint32_t tried = 0, failed = 0;
  double longest = 0;
  for (; tried < count && since(start) < seconds; ++tried) {
    std::string bytes = mutated(t, seed, first + tried);
    if (!keep.empty()) std::ofstream(keep, std::ios::binary) << bytes;
    brasa::fuzz::Outcome out = brasa::fuzz::tried(t, bytes);
    longest = std::max(longest, out.seconds);
    if (out.failure.empty()) continue;
    if (++failed <= 10)
      std::cout << t.name << ", seed " << seed << ", number " << first + tried << ": " << out.failure << "\n";
  }
  std::cout << t.name << ": " << tried << " inputs, seed " << seed << ", " << failed << " failed, the longest took "
            << longest << " s" << std::endl;
  return failed == 0;
}

// All targets, each in a process of its own, as many at once as there are processors.
bool read_mutated_by_all(uint32_t seed, uint32_t first, uint32_t count, double seconds) {
  const unsigned room = std::max(1U, std::thread::hardware_concurrency());
  unsigned running = 0;
  bool good = true;
  auto wait_for_one = [&] {
    int status = -1;
    ::wait(&status);
    --running;
    if (WIFSIGNALED(status)) std::cout << "a target ended by signal " << WTERMSIG(status) << std::endl;
    good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  for (const brasa::fuzz::Target& t : brasa::fuzz::targets()) {
    if (running == room) wait_for_one();
    if (::fork() == 0) ::_exit(read_mutated(t, seed, first, count, seconds, "") ? 0 : 1);
    ++running;
  }
  while (running > 0) wait_for_one();
  return good;
}

// The distribution of compiled over eager; what looks slow is measured again.
void pace(uint32_t seed, uint32_t count, double seconds) {
  constexpr double kSlow = 1.05;
  Clock::time_point start = Clock::now();
  std::vector<std::tuple<double, uint32_t, double>> ratios;  // with the seed and eager's time
  for (uint32_t s = seed; s < seed + count && since(start) < seconds; ++s) {
    double least = 0, eager = 0;
    for (int tries = 0; tries < 3 && (tries == 0 || least > kSlow); ++tries) {
      std::optional<brasa::fuzz::Times> t = brasa::fuzz::times(brasa::fuzz::generate(s));
      if (!t) break;
      double ratio = t->compiled / t->eager;
      least = tries ? std::min(least, ratio) : ratio;
      eager = t->eager;
    }
    if (least > 0) ratios.emplace_back(least, s, eager);
  }
  std::sort(ratios.begin(), ratios.end());
  if (ratios.empty()) return;
  auto at = [&](double share) {
    return std::get<0>(ratios[static_cast<size_t>(share * static_cast<double>(ratios.size() - 1))]);
  };
  auto slow = std::count_if(ratios.begin(), ratios.end(), [](const auto& r) { return std::get<0>(r) > kSlow; });
  std::cout << ratios.size() << " programs from seed " << seed << ", compiled over eager: least " << at(0)
            << ", median " << at(0.5) << ", 90 % " << at(0.9) << ", 99 % " << at(0.99) << "; " << slow << " above "
            << kSlow << "\n";
  for (size_t i = ratios.size(); i-- > 0 && ratios.size() - i <= 8;) {
    auto [ratio, which, eager] = ratios[i];
    std::cout << "seed " << which << ": " << ratio << " of " << eager << " µs\n";
  }
  std::cout << text(brasa::fuzz::generate(std::get<1>(ratios.back())));
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 1) return RUN_ALL_TESTS();
  uint32_t seed = 1, first = 0, count = 100, failed = 0, refused = 0, tried = 0;
  double seconds = 1e9;
  bool sizes = false, paced = false;
  std::string backend = "inductor", given, target, keep;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--seed")) seed = static_cast<uint32_t>(std::stoul(argv[i + 1]));
    if (!std::strcmp(argv[i], "--first")) first = static_cast<uint32_t>(std::stoul(argv[i + 1]));
    if (!std::strcmp(argv[i], "--count")) count = static_cast<uint32_t>(std::stoul(argv[i + 1]));
    if (!std::strcmp(argv[i], "--backend")) backend = argv[i + 1];
    if (!std::strcmp(argv[i], "--seconds")) seconds = std::stod(argv[i + 1]);
    if (!std::strcmp(argv[i], "--sizes")) sizes = std::stoi(argv[i + 1]) != 0;
    if (!std::strcmp(argv[i], "--program")) given = argv[i + 1];
    if (!std::strcmp(argv[i], "--pace")) paced = std::stoi(argv[i + 1]) != 0;
    if (!std::strcmp(argv[i], "--target")) target = argv[i + 1];
    if (!std::strcmp(argv[i], "--keep")) keep = argv[i + 1];
  }
  if (!target.empty()) {
    bool good = true;
    if (seconds < 1e9) count = ~uint32_t{0};
    if (target == "all") return !read_mutated_by_all(seed, first, count, seconds);
    for (const brasa::fuzz::Target& t : brasa::fuzz::targets())
      if (target == t.name) good = read_mutated(t, seed, first, count, seconds, keep) && good;
    return !good;
  }
  if (!given.empty()) {
    std::ifstream in(given);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::cout << brasa::fuzz::difference(brasa::fuzz::parse(text), backend) << "\n";
    return 0;
  }
  if (paced) {
    pace(seed, count, seconds);
    return 0;
  }
  auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  for (uint32_t s = seed; s < seed + count && elapsed() < seconds; ++s, ++tried) {
    brasa::fuzz::Program p = brasa::fuzz::generate(s, sizes);
    std::cout << "seed " << s << "\r" << std::flush;
    refused += !brasa::fuzz::accepted(p);
    if (brasa::fuzz::difference(p, backend).empty()) continue;
    ++failed;
    p = brasa::fuzz::minimised(p, backend);
    std::cout << "seed " << s << ": " << brasa::fuzz::difference(p, backend) << "\n" << text(p) << std::endl;
  }
  std::cout << tried << " programs from seed " << seed << " (" << backend << "): " << failed << " failed, of "
            << refused << " eager ran a part, " << static_cast<int>(elapsed()) << " s; " << brasa::fuzz::compile_cost()
            << std::endl;
  return failed != 0;
}
