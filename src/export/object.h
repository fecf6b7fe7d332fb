#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace brasa::exporting {

/// A section that an object file gets, under a symbol that its code refers to.
struct AddedSection {
  std::string symbol, name;
  std::string_view bytes;
  bool executable = false;
};

/// A relocatable ELF object with more sections, whose symbols are resolved in it, and with all symbols that begin with `alone_`
/// beginning with `prefix`_ instead.
std::string add_sections(std::string_view object, const std::vector<AddedSection>& sections, const std::string& prefix);

}  // namespace brasa::exporting
