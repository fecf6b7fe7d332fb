#include <algorithm>
#include <map>

#include "compiler/fusion/places.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/passes/transform.h"
#include "ops/combiner.h"

// A library's product of reduced floats takes twice as long where a matrix has rows that are no multiple of 16 bytes, wherever they begin
// (cuBLASLt 13 on an H100: 197 x 64 by 64 x 197, 768 times, 155 us; with columns up to 200, 66 us). Here such products get longer rows,
// of zeros where they are summed up. Their results' longer forms go on through what is done with them element by element and row by
// row, so that the next product finds them. A convolution of images with few channels, as the first of most networks is, gets more of them:
// those of all places that a step covers are channels of one place, of which it takes one at a time; and zeros up to a multiple.
namespace brasa::compiler {

namespace prim = ops::prim;

namespace {

constexpr int64_t kMultiple = 8;  // elements of 2 bytes
constexpr int64_t kShort = 16;    // shorter rows would grow too much

bool is_uneven(Expr size) {
  return size.is_constant() && size.constant() >= kShort && size.constant() % kMultiple != 0;
}
Expr up(Expr size) { return ceildiv(size, Expr(kMultiple)) * kMultiple; }

// An operand's source below views and widening, and the dimension of the operand along which it lies in memory; -1 where none does.
struct Source {
  Value value;
  int64_t along = -1;
};
Source source_of(Value operand) {
  std::vector<Link> chain = chain_of(operand);
  const Index& from = chain.front().at;
  Value v = chain.back().value;
  Expr place = linearise(chain.back().at, type_of(v).shape);
  for (size_t d = from.size(); d-- > 0;) {
    if (from[d].is_constant()) continue;
    if (auto step = coefficient(place, from[d]); step && step->is(1)) return {v, static_cast<int64_t>(d)};
  }
  return {v};
}

bool is_product(const Node* n) {
  if (prim_of(n) != Prim::Dot) return false;
  return is_reduced_floating(type_of(source_of(n->arg<Value>(0)).value).dtype) &&
         is_reduced_floating(type_of(source_of(n->arg<Value>(1)).value).dtype);
}

// Images with their channels last that a library convolves, or their weights: the second operand of all three.
bool has_uneven_channels(const Node* n) {
  if (n->op->name().find("prim::channels_last_convolution") != 0) return false;
  const ir::Type& t = type_of(n->arg<Value>(1));
  Expr channels = t.shape.back();
  bool one_group = n->args.back().get<Expr>().is(1);
  return one_group && is_reduced_floating(t.dtype) && channels.is_constant() && channels.constant() % kMultiple != 0;
}

// Such a convolution, or its derivative by the weights, whose steps are more than a place: [n, s·p…, c] becomes [n, p…, s…·c].
class Folding {
 public:
  explicit Folding(const Node* n) {
    bool by_weight = n->op->name() == "prim::channels_last_convolution_by_weight";
    if (!by_weight && n->op->name() != "prim::channels_last_convolution") return;
    image_ = by_weight ? 1 : 0;
    steps_ = by_weight ? 3 : 2;
    stride_ = n->arg<Shape>(steps_);
    const Shape &padding = n->arg<Shape>(steps_ + 1), &dilation = n->arg<Shape>(steps_ + 2),
                &image = type_of(n->arg<Value>(image_)).shape;
    weights_ = by_weight ? n->types[0].shape : type_of(n->arg<Value>(1)).shape;
    const Shape& result = by_weight ? type_of(n->arg<Value>(0)).shape : n->types[0].shape;
    Expr channels = image.back();
    bool known = channels.is_constant(), folds = false;
    for (size_t d = 0; d < stride_.size(); ++d) {
      for (Expr e : {stride_[d], padding[d], image[d + 1], weights_[d + 1], result[d + 1]}) known &= e.is_constant();
      if (!known || !dilation[d].is(1)) return;
      folds |= stride_[d].constant() > 1;
      channels = channels * stride_[d];
      kernel_.push_back(ceildiv(weights_[d + 1], stride_[d]));
      places_.push_back(result[d + 1] - 1 + kernel_[d]);
      low_.push_back(padding[d]);
      high_.push_back(places_[d] * stride_[d] - image[d + 1] - padding[d]);
      if (high_[d].constant() < 0) return;
    }
    constexpr int64_t kMost = 16;
    there_ = known && folds && channels.constant() <= kMost && !PassRunner::switched_off("fold_steps");
  }
  explicit operator bool() const { return there_; }
  // What it makes of one operand, as text.
  std::string of(size_t operand) const {
    return there_ ? operand == image_ ? str(stride_, places_, low_, high_) : str(stride_, kernel_) : "";
  }
  size_t image() const { return image_; }

  // With zeros around it.
  Value folded(Value v, const Shape& counts, const Shape& before, const Shape& behind) const {
    std::vector<Expr> lows(ops::rank_of(v), Expr(0)), highs = lows, none = lows;
    std::copy(before.begin(), before.end(), lows.begin() + 1);
    std::copy(behind.begin(), behind.end(), highs.begin() + 1);
    v = prim::pad(v, ops::scalar(0, ops::dtype_of(v)), lows, highs, none);
    Shape split{ops::size_of(v, 0)}, joined = split;
    std::vector<int64_t> dims{0};
    auto rank = static_cast<int64_t>(counts.size());
    Expr channels = ops::shape_of(v).back();
    for (int64_t d = 0; d < rank; ++d) {
      split.insert(split.end(), {counts[d], stride_[d]});
      joined.push_back(counts[d]);
      channels = channels * stride_[d];
    }
    split.push_back(ops::shape_of(v).back());
    joined.push_back(channels);
    for (int64_t first : {1, 2})
      for (int64_t d = 0; d < rank; ++d) dims.push_back(first + 2 * d);
    dims.push_back(2 * rank + 1);
    Value apart = prim::reshape(v, split);
    return prim::reshape(prim::transpose(apart, dims), joined);
  }
  // The derivative by the weights as they were.
  Value unfolded(Value v) const {
    Shape split{ops::size_of(v, 0)}, joined = split;
    std::vector<int64_t> dims{0};
    auto rank = static_cast<int64_t>(kernel_.size());
    split.insert(split.end(), kernel_.begin(), kernel_.end());
    split.insert(split.end(), stride_.begin(), stride_.end());
    split.push_back(weights_.back());
    for (int64_t d = 0; d < rank; ++d) {
      dims.insert(dims.end(), {1 + d, 1 + rank + d});
      joined.push_back(kernel_[d] * stride_[d]);
    }
    dims.push_back(2 * rank + 1);
    joined.push_back(weights_.back());
    Shape front = ops::shape_of(v);
    front.back() = weights_.back() * ir::product(stride_);
    Value apart = prim::reshape(first_of(v, front), split);
    return first_of(prim::reshape(prim::transpose(apart, dims), joined), weights_);
  }
  Value image_of(Value v) const { return folded(v, places_, low_, high_); }
  Value weights_of(Value v) const {
    Shape behind;
    for (size_t d = 0; d < kernel_.size(); ++d) behind.push_back(kernel_[d] * stride_[d] - weights_[d + 1]);
    return folded(v, kernel_, Shape(kernel_.size(), Expr(0)), behind);
  }
  void set_steps(ir::Args& args) const {
    if (image_ == 1) args[2] = ir::Arg(kernel_);
    args[steps_] = ir::Arg(Shape(stride_.size(), Expr(1)));
    args[steps_ + 1] = ir::Arg(Shape(stride_.size(), Expr(0)));
  }

 private:
  Shape stride_, weights_, kernel_, places_, low_, high_;
  size_t image_ = 0, steps_ = 0;
  bool there_ = false;
};

class Alignment {
 public:
  std::vector<Value> change(const Node* n, ir::Args& args, Primitives& out) {
    if (has_uneven_channels(n)) return convolution(n, args, out);
    switch (prim_of(n)) {
      case Prim::Dot: return is_product(n) ? product(n, args) : std::vector<Value>{};
      case Prim::Pointwise: return pointwise(n, args);
      case Prim::Reduce: return reduce(n, args);
      case Prim::Reshape:
      case Prim::Transpose: return view(n, args);
      default: return {};
    }
  }

 private:
  static std::vector<Value> made(const Node* n, ir::Args args) {
    return ops::Builder::current().call(ops::row_of(*n), std::move(args));
  }
  // The front part of a longer value, which is remembered.
  std::vector<Value> part(Value whole, const Shape& shape) {
    if (ops::shape_of(whole) == shape) return {whole};
    Value v = first_of(whole, shape);
    longer_[v] = whole;
    return {v};
  }
  const Shape* longer_shape(Value v) const {
    auto it = longer_.find(v);
    return it == longer_.end() ? nullptr : &ops::shape_of(it->second);
  }

  // What `v` is of this shape in front, and anything behind; there zeros along `zeroed`.
  Value extended(Value v, const Shape& shape, const std::vector<int64_t>& zeroed) {
    const Shape& own = ops::shape_of(v);
    if (own == shape) return v;
    if (auto it = longer_.find(v); it != longer_.end() && ops::shape_of(it->second) == shape)
      return masked(it->second, own, zeroed, ops::scalar(0, ops::dtype_of(v)));
    const Node* n = v.node;
    ir::Args args = n->args;
    Prim p = prim_of(n);
    if (p == Prim::Transpose) {
      std::vector<int64_t> dims = int_args(n, 1), zeroed_below;
      Shape below = shape;
      for (size_t d = 0; d < dims.size(); ++d) {
        below[dims[d]] = shape[d];
        if (std::count(zeroed.begin(), zeroed.end(), d)) zeroed_below.push_back(dims[d]);
      }
      args[0] = extended(n->arg<Value>(0), below, zeroed_below);
      return made(n, std::move(args))[0];
    }
    if (p == Prim::Reshape)
      if (auto below = across_reshape(shape, own, ops::shape_of(n->arg<Value>(0)))) {
        std::vector<int64_t> zeroed_below;
        int64_t by = static_cast<int64_t>(below->size()) - static_cast<int64_t>(own.size());
        for (int64_t d : zeroed) zeroed_below.push_back(d + by);
        return prim::reshape(extended(n->arg<Value>(0), *below, zeroed_below), shape);
      }
    if (widens(n)) {
      args[0] = extended(n->arg<Value>(0), shape, zeroed);
      return made(n, std::move(args))[0];
    }
    if (p == Prim::Full && zeroed.empty()) {
      args[1] = ir::Arg(shape);
      return made(n, std::move(args))[0];
    }
    if (p == Prim::Broadcast) {
      std::vector<int64_t> dims = int_args(n, 2);
      bool stays = zeroed.empty();
      for (size_t i = 0; i < dims.size(); ++i)
        stays &= own[dims[i]] == shape[dims[i]] || ops::size_of(n->arg<Value>(0), static_cast<int64_t>(i)).is(1);
      if (stays) return prim::broadcast(n->arg<Value>(0), shape, dims);
    }
    std::vector<Expr> more;
    for (size_t d = 0; d < shape.size(); ++d) more.push_back(shape[d] - own[d]);
    return zeros_behind(v, more);
  }
  // `otherwise` where an index is not below the size.
  static Value masked(Value whole, const Shape& own, const std::vector<int64_t>& dims, Value otherwise) {
    const Shape& shape = ops::shape_of(whole);
    Value other = ops::broadcast_to(otherwise, shape);
    for (int64_t d : dims) {
      if (own[d] == shape[d]) continue;
      Value index = prim::iota(shape, d, DType::Int64);
      Value size = prim::full(ops::Number(own[d].constant()), shape, DType::Int64);
      whole = prim::select(prim::binary("lt", index, size), whole, other);
    }
    return whole;
  }
  // The shape before a reshape whose result has longer dimensions, of which the operand has the same; nothing if it splits or joins them.
  static std::optional<Shape> across_reshape(const Shape& longer, const Shape& to, const Shape& from) {
    size_t same = 0;  // last dimensions
    while (same < to.size() && same < from.size() && to[to.size() - 1 - same] == from[from.size() - 1 - same]) ++same;
    Shape out = from;
    for (size_t d = 0; d < to.size(); ++d) {
      if (longer[d] == to[d]) continue;
      if (d + same < to.size()) return std::nullopt;
      out[from.size() - (to.size() - d)] = longer[d];
    }
    return out;
  }

  std::vector<Value> product(const Node* n, const ir::Args& args) {
    Value a = args[0].get<Value>(), b = args[1].get<Value>();
    Shape left = ops::shape_of(a), right = ops::shape_of(b);
    auto rank = static_cast<int64_t>(left.size()), rows = rank - 2, columns = rank - 1;
    Shape shape = left;
    shape[columns] = right[columns];
    int64_t a_along = source_of(a).along, b_along = source_of(b).along;
    bool m = a_along == rows && is_uneven(left[rows]);
    bool k = (a_along == columns || b_along == rows) && is_uneven(left[columns]);
    bool c = is_uneven(right[columns]);  // the result lies along its columns
    if (!m && !k && !c) return {};
    if (m) left[rows] = up(left[rows]);
    if (k) left[columns] = right[rows] = up(left[columns]);
    if (c) right[columns] = up(right[columns]);
    ir::Args longer = args;
    longer[0] = extended(a, left, {columns});
    longer[1] = extended(b, right, {rows});
    return part(made(n, std::move(longer))[0], shape);
  }

  std::vector<Value> convolution(const Node* n, ir::Args& args, Primitives& out) {
    size_t operands = n->op->name() == "prim::channels_last_convolution" ? 2 : 1;  // that have the channels
    Folding folding(n);
    for (size_t i = 2 - operands; i < 2; ++i) {
      Value v = args[i].get<Value>();
      Value& wide = of_more_channels_[{v.node->id, folding.of(i)}];
      if (!wide) {
        Value whole = !folding ? v : i == folding.image() ? folding.image_of(v) : folding.weights_of(v);
        std::vector<Expr> more(ops::rank_of(v), Expr(0));
        more.back() = up(ops::shape_of(whole).back()) - ops::shape_of(whole).back();
        wide = in_memory(zeros_behind(whole, more), out);
      }
      args[i] = ir::Arg(wide);
    }
    if (folding) folding.set_steps(args);
    Value v = made(n, args)[0];
    if (operands == 2) return {v};
    return {folding ? folding.unfolded(v) : first_of(v, n->types[0].shape)};
  }

  std::vector<Value> pointwise(const Node* n, ir::Args& args) {
    const Shape& shape = n->types[0].shape;
    Shape whole = shape;
    bool any = false;
    auto each = [&](const auto& f) {
      for (ir::Arg& a : args)
        if (auto* v = a.get_if<Value>(); v && *v && ops::rank_of(*v) > 0) f(a, *v);
    };
    each([&](ir::Arg&, Value v) {
      const Shape* longer = longer_shape(v);
      for (size_t d = 0; longer && d < whole.size(); ++d)
        if (!((*longer)[d] == shape[d])) {
          whole[d] = (*longer)[d];
          any = true;
        }
    });
    // Integers could be divided by what stands behind.
    if (!any || !is_floating(n->types[0].dtype)) return {};
    each([&](ir::Arg& a, Value v) { a = ir::Arg(extended(v, whole, {})); });
    return part(made(n, args)[0], shape);
  }

  std::vector<Value> reduce(const Node* n, const ir::Args& args) {
    Value x = args[0].get<Value>();
    auto it = longer_.find(x);
    if (it == longer_.end()) return {};
    std::vector<int64_t> dims = int_args(n, 1);
    DType t = ops::dtype_of(x);
    const auto& combiner = args[2].get<std::string>();
    ir::Args longer = args;
    longer[0] = masked(it->second, ops::shape_of(x), dims, identity(combiner, t));
    return part(made(n, std::move(longer))[0], pick(ops::shape_of(x), other_dims(dims, ops::rank_of(x))));
  }

  // The view itself stays; its longer form is there for who wants it.
  std::vector<Value> view(const Node* n, const ir::Args& args) {
    Value x = args[0].get<Value>();
    auto it = longer_.find(x);
    if (it == longer_.end()) return {};
    Value v = made(n, args)[0];
    const Shape &own = ops::shape_of(v), &below = ops::shape_of(it->second);
    ir::Args longer = args;
    longer[0] = it->second;
    if (prim_of(n) == Prim::Transpose) {
      longer_[v] = made(n, std::move(longer))[0];
    } else if (auto shape = across_reshape(below, ops::shape_of(x), own)) {
      longer_[v] = prim::reshape(it->second, *shape);
    }
    return {v};
  }

  std::unordered_map<Value, Value> longer_;                             // by a value that is its front part
  std::map<std::pair<uint32_t, std::string>, Value> of_more_channels_;  // by a value and what becomes of it
};

}  // namespace

void align_products(Primitives& p, const PassContext& context) {
  if (!context.machine.gpu) return;
  const auto& nodes = p.graph->nodes();
  auto changes = [](const Node* n) { return is_product(n) || has_uneven_channels(n); };
  if (std::none_of(nodes.begin(), nodes.end(), changes)) return;
  Alignment alignment;
  transform(p, context.facts, nullptr,
            [&](const Node* n, ir::Args& args, Primitives& out) { return alignment.change(n, args, out); });
}

}  // namespace brasa::compiler
