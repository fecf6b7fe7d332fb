#include "io/big_int.h"

#include <cstdint>
#include <vector>

#include "support/error.h"

namespace brasa::io {
namespace {

void negate(std::vector<uint8_t>& v) {
  int carry = 1;
  for (uint8_t& b : v) {
    carry += static_cast<uint8_t>(~b);
    b = static_cast<uint8_t>(carry);
    carry >>= 8;
  }
}

}  // namespace

std::string decimal_of(std::span<const std::byte> bytes) {
  std::vector<uint8_t> v;
  for (std::byte b : bytes) v.push_back(static_cast<uint8_t>(b));
  bool negative = !v.empty() && v.back() & 0x80;
  if (negative) negate(v);
  std::string out;
  while (true) {
    while (!v.empty() && v.back() == 0) v.pop_back();
    if (v.empty()) break;
    // Nine digits a division.
    uint64_t rest = 0;
    for (size_t i = v.size(); i-- > 0;) {
      rest = rest << 8 | v[i];
      v[i] = static_cast<uint8_t>(rest / 1'000'000'000);
      rest %= 1'000'000'000;
    }
    for (int i = 0; i < 9; ++i, rest /= 10) out += static_cast<char>('0' + rest % 10);
  }
  while (!out.empty() && out.back() == '0') out.pop_back();
  if (out.empty()) return "0";
  if (negative) out += '-';
  return {out.rbegin(), out.rend()};
}

std::string twos_complement_of(std::string_view decimal) {
  bool negative = decimal.starts_with('-');
  std::string_view digits = decimal.substr(negative);
  BRASA_CHECK(!digits.empty() && digits.find_first_not_of("0123456789") == digits.npos, "'", decimal,
              "' is no integer in decimal digits");
  std::vector<uint8_t> v;
  for (char c : digits) {
    unsigned carry = static_cast<unsigned>(c - '0');
    for (uint8_t& b : v) {
      carry += b * 10u;
      b = static_cast<uint8_t>(carry);
      carry >>= 8;
    }
    if (carry) v.push_back(static_cast<uint8_t>(carry));
  }
  v.push_back(0);
  if (negative) negate(v);
  // A byte that only repeats the sign below it says nothing.
  while (v.size() > 1 && v.back() == (v[v.size() - 2] & 0x80 ? 0xff : 0)) v.pop_back();
  return {v.begin(), v.end()};
}

}  // namespace brasa::io
