#include "support/shared_library.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <brasa/error.h>

namespace brasa {
namespace {

constexpr SharedLibrary kMath{"libm.so.6", "libc6", "a root"};

std::string error_of(const SharedLibrary& library, const char* name) {
  try {
    library.symbol(name);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(SharedLibrary, GivesFunctions) { EXPECT_EQ(BRASA_SYMBOL(kMath, sqrt)(9.0), 3.0); }

TEST(SharedLibrary, ErrorsNameThePackage) {
  std::string missing = error_of({"libnowhere.so.1", "libnowhere1", "a picture"}, "open");
  EXPECT_TRUE(missing.starts_with("a picture needs libnowhere.so.1, which cannot be loaded (")) << missing;
  EXPECT_TRUE(missing.ends_with("): install the package libnowhere1")) << missing;
  EXPECT_EQ(error_of(kMath, "no_such_root"), "a root: libm.so.6 has no no_such_root: install the package libc6");
}

}  // namespace
}  // namespace brasa
