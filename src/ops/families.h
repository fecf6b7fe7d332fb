#pragma once

namespace brasa::ops {

class Table;

/// Fills the table from every family, in order.
void add_families(Table& table);

/// One more family, of the program's own. Call it before the table is first used; brasa::Error later. Not thread-safe.
void add_family(void (*family)(Table& table));

}  // namespace brasa::ops
