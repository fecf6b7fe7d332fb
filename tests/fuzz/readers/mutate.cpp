#include <algorithm>
#include <cstring>
#include <random>

#include "fuzz/readers/target.h"

namespace brasa::fuzz {
namespace {

constexpr std::string_view kPieces[] = {"-1",
                                        "0",
                                        "1",
                                        "9999999999999999999",
                                        "18446744073709551615",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "1e999",
                                        "s0",
                                        "(",
                                        ")",
                                        "[",
                                        "]",
                                        "{",
                                        "}",
                                        "\"",
                                        "%9",
                                        "\n",
                                        ",",
                                        ":",
                                        "->",
                                        "//",
                                        "f32",
                                        "*",
                                        "\\",
                                        "\xff",
                                        "nan",
                                        "r0",
                                        "[[",
                                        "((",
                                        "{\"a\":",
                                        "=",
                                        "Tensor",
                                        "int[]",
                                        "?",
                                        "!"};
constexpr uint64_t kNumbers[] = {
    0,          1,          0x7f,       0xff,       0xffff,           0x7fffffff,        0x80000000,
    0xffffffff, 0xfffffffe, 1ull << 32, 1ull << 62, ~uint64_t{0} / 2, uint64_t{1} << 63, ~uint64_t{0}};

}  // namespace

std::string mutated(const Target& target, uint32_t seed, uint32_t number) {
  static std::vector<std::pair<const Target*, std::vector<std::string>>> known;
  auto it = std::find_if(known.begin(), known.end(), [&](auto& k) { return k.first == &target; });
  if (it == known.end()) {
    it = known.insert(it, {&target, target.seeds()});
    target.run(it->second[0]);  // tables that are made once count for no input
  }
  const std::vector<std::string>& seeds = it->second;
  std::seed_seq mixed{seed, number};
  std::mt19937 random(mixed);
  auto below = [&](size_t n) { return n ? random() % n : 0; };
  const std::string &from = seeds[below(seeds.size())], &other = seeds[below(seeds.size())];
  std::string out = from;
  for (size_t k = 0, n = 1 + below(below(3) ? 3 : 12); k < n; ++k) {
    size_t at = below(out.size() + 1), size = std::min(1 + below(below(4) ? 8 : 200), out.size() - at),
           place = below(other.size() + 1), length = std::min(1 + below(below(4) ? 8 : 200), other.size() - place);
    switch (below(target.text ? 8 : 10)) {
      case 0: out.erase(at, size); break;
      case 1: out.insert(at, other, place, length); break;
      case 2: out.replace(at, size, other, place, length); break;
      case 3: out.insert(at, out.substr(at, size)); break;
      case 4: out.replace(at, below(3), kPieces[below(std::size(kPieces))]); break;
      case 5:
        if (at < out.size()) out[at] = static_cast<char>(out[at] ^ (1 << below(8)));
        break;
      case 6:
        if (below(4) == 0) out.resize(at);
        break;
      case 7: {  // a number in decimal digits
        size_t digit = out.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        size_t end = out.find_first_not_of("0123456789", digit);
        out.replace(digit, std::min(end, out.size()) - digit, std::to_string(kNumbers[below(std::size(kNumbers))]));
        break;
      }
      case 8:
      case 9: {
        uint64_t v = kNumbers[below(std::size(kNumbers))] + below(2) * below(300);
        size_t bytes = size_t{1} << below(4);
        if (at + bytes <= out.size()) std::memcpy(out.data() + at, &v, bytes);
      }
    }
  }
  return out;
}

}  // namespace brasa::fuzz
