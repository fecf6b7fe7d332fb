#include "support/str.h"

#include <charconv>
#include <cmath>

namespace brasa {

void append_to(std::string& out, int64_t v) {
  char buffer[24];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  out.append(buffer, end);
}

void append_to(std::string& out, uint64_t v) {
  char buffer[24];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  out.append(buffer, end);
}

void append_to(std::string& out, double v) {
  if (std::isnan(v)) {
    out += "nan";
    return;
  }
  if (std::isinf(v)) {
    out += v < 0 ? "-inf" : "inf";
    return;
  }
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  std::string_view text(buffer, end - buffer);
  out += text;
  if (text.find_first_of(".e") == text.npos) out += ".0";
}

}  // namespace brasa
