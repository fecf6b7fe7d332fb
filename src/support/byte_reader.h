#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "support/error.h"

namespace brasa {

/// Takes what was written, from the front of bytes that stay where they are.
class ByteReader {
 public:
  /// `too_short` is the brasa::Error of whoever takes more than is left.
  ByteReader(std::string_view bytes, std::string too_short) : bytes_(bytes), too_short_(std::move(too_short)) {}

  std::string_view take(uint64_t size) {
    BRASA_CHECK(size <= bytes_.size(), too_short_);
    std::string_view part = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return part;
  }
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, take(sizeof v).data(), sizeof v);
    return v;
  }
  size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  std::string too_short_;
};

}  // namespace brasa
