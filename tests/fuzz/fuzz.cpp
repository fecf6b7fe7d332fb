#include <gtest/gtest.h>

#include "fuzz/program.h"

namespace brasa::fuzz {
namespace {

TEST(Programs, AreEager) {
  for (const auto& [backend, from, to] : {std::tuple("interpreter", 1, 30), {"inductor", 31, 35}})
    for (int seed = from; seed <= to; ++seed) {
      Program p = generate(static_cast<uint32_t>(seed));
      if (std::string d = difference(p, backend); !d.empty()) {
        p = minimised(p, backend);
        ADD_FAILURE() << "seed " << seed << " (" << backend << "): " << difference(p, backend) << "\n" << text(p);
      }
    }
}

TEST(Programs, HaveText) {
  for (uint32_t seed = 1; seed < 20; ++seed) {
    std::string t = text(generate(seed));
    EXPECT_EQ(text(parse(t)), t);
  }
}

}  // namespace
}  // namespace brasa::fuzz
