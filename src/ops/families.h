#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace brasa::ops {

class Table;
struct Row;

/// A family's rows stand together in the table: from `first` to before `last`.
struct Family {
  std::string_view title;
  size_t first, last;
};
/// All families of the table, in its order.
std::span<const Family> families();

/// Fill the table from every family, in order: those of the primitives first.
void add_primitives(Table& table);
void add_operators(Table& table);

/// The rows of the primitives' families, which are there before the others: the code generator asks for no more.
const std::vector<const Row*>& primitives();

/// One more family, of the program's own. Call it before the table is first used; brasa::Error later. Not thread-safe.
void add_family(void (*family)(Table& table), std::string_view title = "Of this program");

}  // namespace brasa::ops
