#pragma once

#include <string_view>

namespace brasa::exporting {

/// What of alone/ goes into exported programs, as this library was built with it: two objects and a header's text.
struct Embedded {
  std::string_view runtime, main, program;
};
const Embedded& embedded();

}  // namespace brasa::exporting
