#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/transform.h"

// Images are convolved with their channels as neighbours in memory, and results stand in the order [n, places…, channels], as images may
// that are given. What is computed from them element by element, in windows and by sums stays in that order: a transposition, which
// would be a copy, goes on behind it until something else reads the value.
namespace brasa::compiler {

namespace prim = ops::prim;

namespace {

using Dims = std::vector<int64_t>;

Dims inverse(const Dims& order) {
  Dims out(order.size());
  for (size_t d = 0; d < order.size(); ++d) out[order[d]] = static_cast<int64_t>(d);
  return out;
}
template <class T>
std::vector<T> picked(const std::vector<T>& items, const Dims& order) {
  std::vector<T> out;
  for (int64_t d : order) out.push_back(items[d]);
  return out;
}

// Of a kernel, along all places; images are larger.
bool is_small(const Shape& s) {
  return std::all_of(s.begin() + 2, s.end(), [](Expr e) { return e.is_constant() && e.constant() <= 11; });
}
Expr places_of(const Shape& s) { return ir::product(std::span(s).subspan(2)); }
// Whether the graph makes it and images take the place of channels there, as in the kernel of a gradient by weights.
bool is_of_images(Value kernel) {
  if (prim_of(kernel) != Prim::Transpose || ir::is_input(below_views(kernel))) return false;
  Dims order = int_args(kernel.node, 1);
  return order[0] == 1 && order[1] == 0;
}
// Others are gradients by weights: their kernel is an image. Its size alone tells, or its order; or the image is one element in a border; of a
// single place, that the graph makes the kernel. What updates weights walks along them.
bool has_small_kernel(const Node& n) {
  const Shape& w = type_of(n.arg<Value>(1)).shape;
  Expr taps = places_of(w), places = places_of(n.types[0].shape), elements = places_of(type_of(n.arg<Value>(0)).shape);
  bool fewer = taps.is_constant() && places.is_constant() && !places.is(1) && places.constant() < taps.constant();
  bool border = elements.is(1) && !places.is(1);
  bool made = places.is(1) && !taps.is(1) && !ir::is_input(below_views(n.arg<Value>(1)));
  return !fewer && !border && !made && !is_of_images(n.arg<Value>(1)) && is_small(w);
}

// Of an input that has its channels last.
bool gives_image(const Node* n) {
  if (prim_of(n) != Prim::Transpose || !ir::is_input(n->arg<Value>(0))) return false;
  Dims order = int_args(n, 1);
  return (order.size() == 4 || order.size() == 5) && order == channels_to_front(order.size());
}

class Order {
 public:
  Order(const PassContext& context, bool images) : context_(context), images_(images) {}

  std::vector<Value> change(const Node* n, ir::Args& args, Primitives& out) {
    switch (prim_of(n)) {
      case Prim::Convolution: return convolution(n, args, out);
      case Prim::Concat: return concat(n, args);
      case Prim::Transpose: return transpose(n, args);
      case Prim::Pointwise: return pointwise(n, args);
      case Prim::Reduce:
      case Prim::ArgReduce: return reduce(n, args);
      case Prim::Window: return window(n, args);
      case Prim::Pad: return along_each(n, args, {2, 3, 4});
      case Prim::Slice: return along_each(n, args, {1, 2, 3});
      case Prim::Broadcast: return broadcast(n, args);
      case Prim::Reshape: return reshape(n, args);
      case Prim::Gather: return gather(n, args);
      default: return {};
    }
  }

 private:
  // A value is `of`, with its dimensions in this order.
  struct Seen {
    Value of;
    Dims order;
  };
  const Seen* seen(const ir::Arg& a) const {
    const Value* v = a.get_if<Value>();
    auto it = v && *v ? seen_.find(*v) : seen_.end();
    return it == seen_.end() ? nullptr : &it->second;
  }
  std::vector<Value> ordered(Value of, const Dims& order) {
    Value v = prim::transpose(of, order);
    if (!(v == of)) seen_[v] = {of, order};
    return {v};
  }
  static Value made(const Node* n, ir::Args args) {
    return ops::Builder::current().call(ops::row_of(*n), std::move(args))[0];
  }

  std::vector<Value> transpose(const Node* n, const ir::Args& args) {
    Value x = args[0].get<Value>();
    Dims order = int_args(n, 1);
    if (const Seen* s = seen(args[0])) return ordered(s->of, picked(s->order, order));
    if ((prim_of(x) == Prim::Whole && is_convolution(x.node)) || (images_ && gives_image(n))) return ordered(x, order);
    return {};
  }
  static bool is_convolution(const Node* n) {
    return std::string_view(n->op->name()).starts_with("prim::channels_last_convolution");
  }

  // On a CPU, whose loops convolve them.
  std::vector<Value> convolution(const Node* n, const ir::Args& args, Primitives& out) {
    Conv c(args);
    if (!has_small_kernel(*n) || !takes_channels_last(c, context_)) return {};
    size_t rank = c.spatial() + 2;
    Dims second = channels_to_front(rank);
    const Seen* s = seen(args[0]);
    c.x = s && s->order == second ? s->of : prim::transpose(c.x, channels_to_end(rank));
    return ordered(convolution_channels_last(c, n->types[0].shape, out, context_), second);
  }

  std::vector<Value> concat(const Node* n, ir::Args& args) {
    auto parts = args[0].get<std::vector<Value>>();
    const Seen* first = nullptr;
    for (Value v : parts)
      if (const Seen* s = seen(ir::Arg(v)); s && !first) first = s;
    if (!first) return {};
    Dims order = first->order, back = inverse(order);
    for (Value& v : parts) {
      const Seen* s = seen(ir::Arg(v));
      v = s && s->order == order ? s->of : prim::transpose(v, back);
    }
    return ordered(prim::concat(parts, order[n->arg<Expr>(1).constant()]), order);
  }

  // The others are read in the order of the first that stands in one.
  std::vector<Value> pointwise(const Node* n, ir::Args& args) {
    const Seen* first = nullptr;
    for (const ir::Arg& a : args)
      if (const Seen* s = seen(a); s && !first) first = s;
    if (!first) return {};
    Dims order = first->order, back = inverse(order);
    for (ir::Arg& a : args) {
      const Value* v = a.get_if<Value>();
      if (!v || !*v || ops::rank_of(*v) == 0) continue;
      const Seen* s = seen(a);
      a = ir::Arg(s && s->order == order ? s->of : reordered(*v, back));
    }
    return ordered(made(n, args), order);
  }

  // What repeats elements of one dimension does it in any order, and shows that they differ along vectors where it stands last.
  static Value reordered(Value v, const Dims& order) {
    if (prim_of(v) != Prim::Broadcast) return prim::transpose(v, order);
    Value x = v.node->arg<Value>(0);
    const Shape& s = ops::shape_of(x);
    auto differs = [](Expr size) { return !size.is(1); };
    if (std::count_if(s.begin(), s.end(), differs) != 1) return prim::transpose(v, order);
    auto d = std::find_if(s.begin(), s.end(), differs);
    auto at = std::find(order.begin(), order.end(), int_args(v.node, 2)[d - s.begin()]) - order.begin();
    return prim::broadcast(prim::reshape(x, {*d}), picked(ops::shape_of(v), order), {at});
  }

  std::vector<Value> reduce(const Node* n, ir::Args& args) {
    const Seen* s = seen(args[0]);
    if (!s) return {};
    Dims reduced = picked(s->order, reduced_dims(n)), order;
    // Inner dimensions are summed first, as they stand here.
    if (context_.machine.orders_sums() && !std::is_sorted(reduced.begin(), reduced.end())) return {};
    Dims kept = picked(s->order, other_dims(reduced_dims(n), static_cast<int64_t>(s->order.size()))), among = kept;
    std::sort(among.begin(), among.end());
    for (int64_t d : kept) order.push_back(std::find(among.begin(), among.end(), d) - among.begin());
    args[0] = ir::Arg(s->of);
    std::sort(reduced.begin(), reduced.end());
    args[1] = prim_of(n) == Prim::Reduce ? ir::Arg(Shape(reduced.begin(), reduced.end())) : ir::Arg(Expr(reduced[0]));
    return ordered(made(n, args), order);
  }

  // A dimension more stands behind.
  std::vector<Value> window(const Node* n, ir::Args& args) {
    const Seen* s = seen(args[0]);
    if (!s) return {};
    Dims order = s->order;
    args[0] = ir::Arg(s->of);
    args[1] = ir::Arg(Expr(order[n->arg<Expr>(1).constant()]));
    order.push_back(static_cast<int64_t>(order.size()));
    return ordered(made(n, args), order);
  }

  // What has a list with an item for each dimension.
  std::vector<Value> along_each(const Node* n, ir::Args& args, std::initializer_list<size_t> lists) {
    const Seen* s = seen(args[0]);
    if (!s) return {};
    Dims order = s->order, back = inverse(order);
    args[0] = ir::Arg(s->of);
    for (size_t i : lists) args[i] = ir::Arg(picked(args[i].get<Shape>(), back));
    return ordered(made(n, args), order);
  }

  // With more dimensions: the last ones stand behind in memory, too, and another one behind that which it follows.
  std::vector<Value> broadcast(const Node* n, const ir::Args& args) {
    const Seen* s = seen(args[0]);
    Dims dims = int_args(n, 2), in_memory, places;
    if (!s || dims[0] != 0) return {};
    for (int64_t d : inverse(s->order)) {
      places.push_back(static_cast<int64_t>(in_memory.size()));
      int64_t next = d + 1 < std::ssize(dims) ? dims[d + 1] : dims[d] + 1;
      for (int64_t at = dims[d]; at < next; ++at) in_memory.push_back(at);
    }
    in_memory = with_more(in_memory, n->types[0].shape.size());
    return ordered(prim::broadcast(s->of, picked(args[1].get<Shape>(), in_memory), places), inverse(in_memory));
  }
  // Of dimensions that stand behind in either order, or of neighbours that are neighbours in memory.
  std::vector<Value> reshape(const Node*, const ir::Args& args) {
    const Seen* s = seen(args[0]);
    if (!s) return {};
    const Shape &from = ops::shape_of(args[0].get<Value>()), &to = args[1].get<Shape>();
    size_t moved = s->order.size();
    while (moved > 0 && s->order[moved - 1] == static_cast<int64_t>(moved) - 1) --moved;
    if (moved > to.size() || !std::equal(from.begin(), from.begin() + static_cast<int64_t>(moved), to.begin()))
      return merged(*s, from, to);
    Dims order = with_more({s->order.begin(), s->order.begin() + static_cast<int64_t>(moved)}, to.size());
    return ordered(prim::reshape(s->of, picked(to, inverse(order))), order);
  }
  // Where each dimension of the result is one, or is made of several.
  std::vector<Value> merged(const Seen& s, const Shape& from, const Shape& to) {
    Dims first;
    size_t next = 0;
    for (Expr size : to) {
      if (next == from.size()) return {};
      first.push_back(s.order[next]);
      for (Expr all = from[next++]; !(all == size); all = all * from[next++])
        if (next == from.size() || s.order[next] != s.order[next - 1] + 1) return {};
    }
    if (next != from.size()) return {};
    Dims in_memory = counted(0, to.size());
    std::sort(in_memory.begin(), in_memory.end(), [&](int64_t a, int64_t b) { return first[a] < first[b]; });
    return ordered(prim::reshape(s.of, picked(to, in_memory)), inverse(in_memory));
  }
  // An element for each, at a place that differs along some dimensions: the result has the operand's dimensions.
  std::vector<Value> gather(const Node* n, ir::Args& args) {
    const Seen* s = seen(args[0]);
    Dims dims = int_args(n, 2);
    std::vector<Value> indices = args[1].get<std::vector<Value>>();
    if (!s) return {};
    if (dims != counted(0, s->order.size()) || ops::rank_of(indices[0]) != static_cast<int64_t>(dims.size()))
      return gather_along(*s, dims, indices);
    Dims order = s->order, back = inverse(order);
    for (Value& v : indices) v = prim::transpose(v, back);
    args[0] = ir::Arg(s->of);
    args[1] = ir::Arg(picked(indices, back));
    return ordered(made(n, args), order);
  }
  // What is picked stands in front, and here where the first of the dimensions stands along which it is picked.
  std::vector<Value> gather_along(const Seen& s, const Dims& dims, const std::vector<Value>& indices) {
    Dims along = picked(s.order, dims), rest = other_dims(along, static_cast<int64_t>(s.order.size()));
    if (!std::is_sorted(along.begin(), along.end())) return {};
    int64_t before = std::count_if(rest.begin(), rest.end(), [&](int64_t d) { return d < along[0]; });
    int64_t front = ops::rank_of(indices[0]);
    Dims in_memory = counted(front, static_cast<size_t>(front + before)),
         order = counted(before, static_cast<size_t>(before + front));
    for (int64_t d = 0; d < front; ++d) in_memory.push_back(d);
    for (int64_t d = before; d < static_cast<int64_t>(rest.size()); ++d) in_memory.push_back(front + d);
    for (int64_t d : picked(s.order, other_dims(dims, static_cast<int64_t>(s.order.size())))) {
      int64_t place = std::find(rest.begin(), rest.end(), d) - rest.begin();
      order.push_back(place < before ? place : place + front);
    }
    return ordered(prim::transpose(prim::gather(s.of, indices, along), in_memory), order);
  }

  static Dims counted(int64_t from, size_t end) {
    Dims out;
    for (auto d = from; d < static_cast<int64_t>(end); ++d) out.push_back(d);
    return out;
  }
  static Dims with_more(Dims order, size_t rank) {
    Dims more = counted(static_cast<int64_t>(order.size()), rank);
    order.insert(order.end(), more.begin(), more.end());
    return order;
  }

  const PassContext& context_;
  const bool images_;  // whether inputs may have the order, too
  std::unordered_map<Value, Seen> seen_;
};

// On a CPU: several convolutions, most of which have a form for this order and an image that the graph makes; images that come or go would
// be copied into their order, and back. Gradients by weights read the images along their places, of which they make a copy in any case for
// its border.
bool convolves_often(const ir::Graph& graph, const PassContext& context) {
  int count = 0, others = 0, ends = 0;
  for (const Node* n : live_nodes(graph)) {
    if (prim_of(n) != Prim::Convolution || !has_small_kernel(*n)) continue;
    Conv c(n->args);
    ++(takes_channels_last(c, context) ? count : others);
    ends += ir::is_input(below_views(c.x));
  }
  for (const ir::Output& o : graph.outputs())
    ends += o.into < 0 && type_of(o.value).rank() > 2 && !is_small(type_of(o.value).shape);
  return count > 1 && count > 2 * (others + std::max(ends - 2, 0));
}

}  // namespace

void keep_channels_last(Primitives& p, const PassContext& context) {
  const auto& nodes = p.graph->nodes();
  auto any = [&](auto&& f) { return std::any_of(nodes.begin(), nodes.end(), f); };
  bool whole = any([](const Node* n) { return prim_of(n) == Prim::Whole; });
  // A CPU's loops read images as they come where a convolution has no form for this order.
  auto without_form = [&](const Node* n) {
    return prim_of(n) == Prim::Convolution && !(has_small_kernel(*n) && takes_channels_last(Conv(n->args), context));
  };
  bool images = any(gives_image) && (context.machine.gpu || !any(without_form));
  if (!whole && !images && !convolves_often(*p.graph, context)) return;
  Order order(context, images);
  transform(p, context.facts, nullptr,
            [&](const Node* n, ir::Args& args, Primitives& out) { return order.change(n, args, out); });
}

}  // namespace brasa::compiler
