#include "compiler/loops/ops.h"

#include <array>

#include "ops/table.h"
#include "support/lazy.h"

namespace brasa::compiler {
namespace {

struct LoopRow final : ir::Op {
  LoopOp kind = LoopOp::For;
  bool legal_at(ir::Level level) const override { return level == ir::Level::Loops; }
};

constexpr const char* kSchemas[] = {
    "loop::for(SymInt range, str kind, int width=1, int unroll=1) -> Tensor",
    "loop::index(SymInt e, Tensor[] values=[]) -> Tensor",
    "loop::bind(Tensor value, SymInt symbol, SymInt[] ranges=[]) -> Tensor",
    "loop::load(Tensor buffer, SymInt index, Tensor? mask=None, Tensor[] values=[]) -> Tensor",
    "loop::store(Tensor buffer, SymInt index, Tensor value, Tensor? mask=None, Tensor[] values=[], str combine='') -> Tensor",
    "loop::prefetch(Tensor buffer, SymInt index, Tensor[] values=[], SymInt[] ranges=[], int level=1) -> Tensor",
    "loop::reduce(Tensor[] items, SymInt[] ranges, str combiner) -> Tensor[]",
    "loop::scan(Tensor item, SymInt range, str combiner, Tensor? factor=None) -> Tensor",
    "loop::stage(Tensor value, SymInt[] ranges, str space) -> Tensor",
    "loop::unlikely(Tensor condition, Tensor rare, Tensor usual) -> Tensor",
    "loop::pair_product(Tensor a, Tensor b) -> Tensor",
    "loop::quad_product(Tensor a, Tensor b) -> Tensor",
    "loop::scale(Tensor x, Tensor n) -> Tensor",
    "loop::table(int[] bits, ScalarType dtype) -> Tensor",
    "loop::tile_product(Tensor a, Tensor b, SymInt a_at, SymInt a_row, SymInt a_step, SymInt b_at, SymInt steps, int rows, int columns, str kind) -> Tensor",
    "loop::unwritten(Tensor[] buffers) -> Tensor",
};
constexpr size_t kCount = std::size(kSchemas);

const std::array<LoopRow, kCount>& rows() {
  static constinit Lazy<std::array<LoopRow, kCount>> rows([] {
    std::array<LoopRow, kCount> made;
    for (size_t i = 0; i < kCount; ++i) {
      made[i].schema = ir::parse_schema(kSchemas[i]);
      made[i].kind = static_cast<LoopOp>(i);
    }
    return made;
  });
  return *rows;
}

}  // namespace

const ir::Op* loop_op(LoopOp op) { return &rows()[static_cast<size_t>(op)]; }

std::optional<LoopOp> loop_kind(const ir::Op* op) {
  const ir::Op* first = rows().data();
  const ir::Op* last = &rows().back();
  if (std::less<>()(op, first) || std::less<>()(last, op)) return std::nullopt;
  return static_cast<const LoopRow*>(op)->kind;
}

bool is_constant(const ir::Node* n) { return !loop_kind(n->op) && ops::kind_of(*n) == ops::Kind::Full; }

bool is_shared(const ir::Node* array) {
  return loop_kind(array->op) == LoopOp::Stage && array->arg<std::string>(2) == "shared";
}

bool makes_array(const ir::Node* n) {
  auto kind = loop_kind(n->op);
  return kind == LoopOp::Stage || kind == LoopOp::TileProduct;
}

const std::string& tile_kind(const ir::Node* product) { return product->arg<std::string>(9); }

ops::ScalarOp scalar_op_of(const ir::Op* op) {
  if (op == ir::input_op() || loop_kind(op)) return ops::ScalarOp::None;
  return static_cast<const ops::Row*>(op)->scalar;
}

const ir::Op* find_loop_level_op(std::string_view name) {
  for (const LoopRow& row : rows())
    if (row.name() == name) return &row;
  return ops::find(name);
}

}  // namespace brasa::compiler
