#include "ops/scalar_op.h"

#include <array>

#include "ops/families.h"
#include "ops/table.h"
#include "support/error.h"
#include "support/lazy.h"

namespace brasa::ops {
namespace {

constexpr std::string_view kNames[] = {"",
#define BRASA_SCALAR_NAME(Enumerator, name) name,
                                       BRASA_SCALAR_OPS(BRASA_SCALAR_NAME)
#undef BRASA_SCALAR_NAME
};

using Rows = std::array<const Row*, std::size(kNames)>;
const Rows& rows() {
  static constinit Lazy<Rows> rows([] {
    Rows all{};
    for (const Row* row : primitives())
      if (row->scalar != ScalarOp::None) all[static_cast<size_t>(row->scalar)] = row;
    return all;
  });
  return *rows;
}

}  // namespace

std::string_view name(ScalarOp op) { return kNames[static_cast<size_t>(op)]; }

ScalarOp scalar_op_of(std::string_view name) {
  for (size_t i = 1; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<ScalarOp>(i);
  return ScalarOp::None;
}

const Row& row_of(ScalarOp op) {
  const Row* row = rows()[static_cast<size_t>(op)];
  BRASA_ASSERT(row, "no row for the scalar operator '", name(op), "'");
  return *row;
}

}  // namespace brasa::ops
