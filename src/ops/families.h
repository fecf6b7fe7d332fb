#pragma once

namespace brasa::ops {

class Table;

/// Fills the table from every family, in order.
void add_families(Table& table);

}  // namespace brasa::ops
