#include <algorithm>
#include <array>
#include <random>

#include "fuzz/operators.h"

namespace brasa::fuzz {

Program generate(uint32_t seed, bool sizes) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  auto one_in = [&](int n) { return below(n) == 0; };
  std::vector<std::string> names;
  for (const auto& [name, f] : operators()) names.push_back(name);
  Program p;
  p.single = one_in(5);
  // A program uses some operators more than others, so that what goes wrong with two of them meets.
  std::vector<std::string> favourites;
  for (int k = 0; k < 12; ++k) favourites.push_back(names[below(static_cast<int>(names.size()))]);
  int functions = 1 + one_in(3) + one_in(6);
  for (int f = 0; f < functions; ++f) {
    auto& body = p.functions.emplace_back();
    int length = 3 + below(12);
    for (int k = 0; k < length; ++k) {
      const auto& from = one_in(3) ? names : favourites;
      body.push_back({from[below(static_cast<int>(from.size()))], below(one_in(3) ? 8 : 2), below(8), below(6)});
    }
  }
  std::array other = {1, 2, 3, 5, 6, 8, 9};
  std::shuffle(other.begin(), other.end(), random);
  static constexpr int kRows[] = {3, 4, 5, 4, 3, 7, 2, 1, 6, 8};
  int calls = sizes ? 5 : 3 + below(4);
  bool same_size = one_in(3), same_number = one_in(2);
  auto after = static_cast<After>(below(static_cast<int>(After::Count)));
  for (int k = 0; k < calls; ++k) {
    Call& c = p.calls.emplace_back();
    c.function = sizes ? 0 : below(functions);
    c.rows = sizes ? other[k] : same_size ? 4 : kRows[below(10)];
    c.number = same_number ? 3 : below(8);
    c.alias = one_in(3) ? static_cast<Alias>(below(static_cast<int>(Alias::Count))) : Alias::None;
    c.after = one_in(4) ? static_cast<After>(below(static_cast<int>(After::Count))) : after;
    c.gradient = !one_in(3);
    c.leaf = !one_in(3);
    c.hook = one_in(5);
    c.shared_tensor = one_in(4);
  }
  return p;
}

}  // namespace brasa::fuzz
