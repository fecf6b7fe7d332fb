#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace brasa::ops {

class Table;

/// A family's rows stand together in the table: from `first` to before `last`.
struct Family {
  std::string_view title;
  size_t first, last;
};
/// All families of the table, in its order.
std::span<const Family> families();

/// Fills the table from every family, in order.
void add_families(Table& table);

/// One more family, of the program's own. Call it before the table is first used; brasa::Error later. Not thread-safe.
void add_family(void (*family)(Table& table), std::string_view title = "Of this program");

}  // namespace brasa::ops
