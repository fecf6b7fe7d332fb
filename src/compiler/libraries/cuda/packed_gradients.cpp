#include "compiler/libraries/cuda/packed_gradients.h"

#include <algorithm>

#include "compiler/libraries/operands.h"
#include "compiler/passes/transform.h"
#include "runtime/cuda/attention.h"

namespace brasa::compiler {

PackedGradients::PackedGradients(const Node& n) : at_(probe(n.types[0].shape)), along_(at_.size()) {
  whole_ = is_view(prim_of(&n)) && look(n.arg<Value>(0), view_index(&n, at_)) && attention_ && side_by_side(n);
}

Part PackedGradients::part(uint32_t result, const std::vector<Expr>& strides) const {
  const Found& found = found_[result];
  Part out{found.low * strides[along_], {}};
  for (Expr e : found.at) {
    out.steps.emplace_back(0);
    for (size_t d = 0; d < at_.size(); ++d)
      if (coefficient(e, at_[d]) == std::optional(Expr(1))) out.steps.back() = strides[d];
  }
  return out;
}

bool PackedGradients::look(Value v, const Index& at) {
  const Node* n = v.node;
  if (n->op->name() == "prim::attention_backward") {
    if ((attention_ && attention_ != n) || !padded_ || v.index >= found_.size() || !found_[v.index].at.empty())
      return false;
    if (!attention_) inside_.push_back(n);
    attention_ = n;
    found_[v.index] = {at, low_, size_};
    padded_ = false;
    return std::all_of(at.begin(), at.end(), [&](Expr e) { return is_step(e); });
  }
  inside_.push_back(n);
  Value first = n->args.empty() || !n->args[0].is<Value>() ? Value{} : n->arg<Value>(0);
  if (is_view(prim_of(n))) return look(first, view_index(n, at));
  if (converts(n)) return is_floating(type_of(first).dtype) && look(first, at);
  if (n->op->name() == "prim::add") return look_sum(first, n->arg<Value>(1), at);
  if (prim_of(n) == Prim::Concat) return look_at_parts(n, at);
  return prim_of(n) == Prim::Pad && look_around(n, at);
}

bool PackedGradients::look_sum(Value a, Value b, const Index& at) {
  return (is_zero(a) || look(a, at)) && (is_zero(b) || look(b, at));
}

// A pad along one dimension.
bool PackedGradients::look_around(const Node* n, const Index& at) {
  const auto &low = n->arg<std::vector<Expr>>(2), &high = n->arg<std::vector<Expr>>(3);
  std::optional<size_t> dim;
  for (size_t d = 0; d < at.size(); ++d) {
    if (!n->arg<std::vector<Expr>>(4)[d].is(0)) return false;
    if (low[d].is(0) && high[d].is(0)) continue;
    if (dim) return false;
    dim = d;
  }
  return dim && is_zero(n->arg<Value>(1)) && look_within(n->arg<Value>(0), at, *dim, low[*dim]);
}

bool PackedGradients::look_at_parts(const Node* n, const Index& at) {
  auto dim = static_cast<size_t>(n->arg<Expr>(1).constant());
  Expr low(0);
  for (Value v : n->arg<std::vector<Value>>(0)) {
    if (!look_within(v, at, dim, low)) return false;
    low = low + type_of(v).shape[dim];
  }
  return true;
}

// What lies in the whole tensor from `low` on along a dimension.
bool PackedGradients::look_within(Value v, Index at, size_t dim, Expr low) {
  auto place = std::find(at_.begin(), at_.end(), at[dim]);
  if (padded_ || place == at_.end()) return false;
  auto along = static_cast<size_t>(place - at_.begin());
  if (!attention_) along_ = along;
  padded_ = true;
  low_ = low;
  size_ = type_of(v).shape[dim];
  at[dim] = size_.is(1) ? Expr(0) : at[dim] - low;
  return along_ == along && look(v, at);
}

// Of a dimension of a gradient: along one of the whole tensor.
bool PackedGradients::is_step(Expr e) const {
  int steps = 0;
  for (Expr symbol : at_) {
    auto c = coefficient(e, symbol);
    if (!c || !(c->is(0) || c->is(1))) return false;
    steps += c->is(1);
  }
  return steps == 1 || e.is(0);
}

// Without gaps.
bool PackedGradients::side_by_side(const Node& n) const {
  std::vector<const Found*> parts;
  for (const Found& f : found_) {
    if (f.at.empty() || !f.low.is_constant() || !f.size.is_constant()) return false;
    parts.push_back(&f);
  }
  std::sort(parts.begin(), parts.end(),
            [](const Found* a, const Found* b) { return a->low.constant() < b->low.constant(); });
  Expr end(0);
  for (const Found* f : parts) {
    if (!(f->low == end)) return false;
    end = end + f->size;
  }
  return end == n.types[0].shape[along_];
}

bool PackedGradients::in_rows() const {
  auto along = [&](Expr e, size_t dim) { return e.is(0) || coefficient(e, at_[dim]) == std::optional(Expr(1)); };
  return along_ > 1 && std::all_of(found_.begin(), found_.end(),
                                   [&](const Found& f) { return along(f.at[0], 0) && along(f.at[1], 1); });
}

namespace {

// What it is made of in the same order, that has all rows of a head in a dimension of its own; those between go to `inside`.
const Node* packed_below(Value v, std::vector<const Node*>& inside) {
  while (prim_of(v) == Prim::Reshape || widens(v.node)) {
    inside.push_back(v.node);
    v = v.node->arg<Value>(0);
  }
  PackedGradients packed(*v.node);
  if (!packed || !packed.in_rows()) return nullptr;
  const ir::Type& query = type_of(packed.attention()->arg<Value>(1));
  auto features = query.shape.back().maybe_constant();
  bool sums = features && runtime::cuda::sums_attention_gradients(query.dtype, *features);
  return sums && type_of(v).dtype == query.dtype ? v.node : nullptr;
}

// [batches, rows of a head, columns]
Shape rows_of(const Node& packed) {
  const Shape& s = packed.types[0].shape;
  return {s[0], s[1], product(Shape(s.begin() + 2, s.end()))};
}
Shape in_sums(const Shape& rows) {
  constexpr int kRows = runtime::cuda::kRowsOfSum;
  return {rows[0], ceildiv(rows[1], Expr(kRows)), kRows, rows[2]};
}

bool is_all_zero(const std::vector<Expr>& v) {
  return std::all_of(v.begin(), v.end(), [](Expr e) { return e.is(0); });
}
// With zeros behind the last rows of each head.
bool pads_rows(const Node* pad, const Shape& sums) {
  bool behind = is_all_zero(pad->arg<std::vector<Expr>>(2)) && is_all_zero(pad->arg<std::vector<Expr>>(4));
  return behind && is_zero(pad->arg<Value>(1)) && pad->types[0].shape == Shape{sums[0], sums[1] * sums[2], sums[3]};
}

}  // namespace

std::optional<SummedGradients> summed_gradients(const Node& n) {
  if (prim_of(&n) != Prim::Reduce || n.types[0].dtype != DType::Float32 || n.arg<std::string>(2) != "add" ||
      int_args(&n, 1) != std::vector<int64_t>{2})
    return std::nullopt;
  SummedGradients out{nullptr, {}};
  Value x = n.arg<Value>(0), below = prim_of(x) == Prim::Reshape ? x.node->arg<Value>(0) : x;
  const Node* pad = prim_of(below) == Prim::Pad ? below.node : nullptr;
  if (pad) out.inside = {x.node, pad};
  out.packed = packed_below(pad ? pad->arg<Value>(0) : x, out.inside);
  if (!out.packed) return std::nullopt;
  Shape rows = rows_of(*out.packed), sums = in_sums(rows);
  bool whole = pad ? type_of(pad->arg<Value>(0)).shape == rows && pads_rows(pad, sums) : true;
  if (!whole || type_of(x).shape != sums) return std::nullopt;
  return out;
}

Value sums_of_gradients(Value x, const std::vector<int64_t>& dims) {
  std::vector<const Node*> inside;
  const Node* packed = packed_below(x, inside);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != static_cast<int64_t>(i)) return {};
  if (!packed) return {};
  Shape rows = rows_of(*packed), sums = in_sums(rows);
  if (!(product(pick(ops::shape_of(x), dims)) == rows[0] * rows[1])) return {};
  Value v = ops::prim::reshape(x, rows);
  v = zeros_behind(v, {0, sums[1] * sums[2] - rows[1], 0});
  return ops::prim::reduce(ops::prim::reshape(v, sums), {2}, "add");
}

}  // namespace brasa::compiler
