#pragma once

#include <brasa/safetensors.h>

namespace brasa::safetensors {

struct Placed {
  Entry entry;
  uint64_t begin, end;
};

struct Header {
  std::vector<Placed> tensors;  // in the header's order
  Metadata metadata;
};

/// A header's text, whose tensors lie in `data`; two of them may have one name. Takes time and memory in proportion to the text.
Header parse_header(std::string_view text, std::span<const std::byte> data, const std::string& source);

}  // namespace brasa::safetensors
