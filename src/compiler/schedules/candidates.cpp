#include <algorithm>

#include "compiler/lowering/expressions.h"
#include "compiler/schedules/schedule.h"

// Which other schedules are worth a measurement: the heuristics' choices one by one, each a step or two to either side.
namespace brasa::compiler {

namespace {

// A choice and the values to try, all else equal.
class Candidates {
 public:
  explicit Candidates(const Schedule& first) : first_(first) {}

  template <class T>
  void vary(T Schedule::* choice, std::vector<T> values) {
    std::vector<Schedule> tried;
    for (T value : values) {
      bool known = value == first_.*choice ||
                   std::any_of(tried.begin(), tried.end(), [&](const Schedule& s) { return s.*choice == value; });
      if (known) continue;
      tried.push_back(first_);
      tried.back().*choice = value;
    }
    if (!tried.empty()) out_.push_back(std::move(tried));
  }
  void vary(std::vector<Schedule> tried) {
    if (!tried.empty()) out_.push_back(std::move(tried));
  }
  std::vector<std::vector<Schedule>> take() { return std::move(out_); }

 private:
  const Schedule& first_;
  std::vector<std::vector<Schedule>> out_;
};

void of_contraction(const Schedule& s, const Machine& machine, Candidates& out) {
  auto halves = [](int n) { return std::vector<int>{std::max(n / 2, 1), n * 2}; };
  if (s.matrix_tiles) {
    out.vary(&Schedule::row_blocks, halves(s.row_blocks));
    out.vary(&Schedule::row_pieces, halves(s.row_pieces));
    out.vary(&Schedule::panel_blocks, halves(s.panel_blocks));
    return;
  }
  // Its panels have so many columns: rows are free, as many as registers hold beside a row of the second operand.
  int held = s.vectors + 1, most = std::max((machine.vector_registers - held) / std::max(s.vectors, 1), 1);
  out.vary(&Schedule::rows, {std::max(s.rows - 1, 1), std::min(s.rows + 1, most)});
  if (!s.stage_rows)
    out.vary(&Schedule::row_blocks, {1, std::max(s.row_blocks / 2, 1), s.row_blocks * 2, s.row_blocks * 4});
  if (s.panel_blocks > 0) out.vary(&Schedule::panel_blocks, halves(s.panel_blocks));
  if (!s.along_k) out.vary(&Schedule::k_unroll, {1, 2, 4});
  out.vary(&Schedule::stage_tile, {!s.stage_tile});
}

// Sums keep the order that so many accumulators give them.
void of_loops(const Schedule& s, const Domain& domain, Candidates& out) {
  bool sums = domain.folds();
  if (!sums) out.vary(&Schedule::unroll, {1, 2, 4});
  if (s.vector_outside) out.vary(&Schedule::serial_unroll, {1, 2, 4});
  for (size_t a = 0; a < s.axes.size(); ++a) {
    const Axis& axis = s.axes[a];
    if (axis.piece == 0 || axis.spelled_out || axis.summed || axis.reduced) continue;
    std::vector<Schedule> tried;
    for (int64_t piece : {axis.piece / 2, axis.piece * 2, axis.piece * 4}) {
      bool whole = piece >= int64_t{s.width} * s.unroll || axis.kind != Axis::Vector;
      if (piece < 1 || !whole) continue;
      tried.push_back(s);
      tried.back().axes[a].piece = piece;
    }
    out.vary(std::move(tried));
  }
}

}  // namespace

std::vector<std::vector<Schedule>> candidates(const Group& group, const Machine& machine, const Schedule& first) {
  Candidates out(first);
  if (machine.gpu || machine.one_order) return {};
  if (group.kind == GroupKind::Contraction) of_contraction(first, machine, out);
  if (group.kind == GroupKind::Loops) of_loops(first, group.domain, out);
  out.vary(&Schedule::grain, {std::max<int64_t>(first.grain / 4, 1), first.grain * 4});
  return out.take();
}

}  // namespace brasa::compiler
