#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/compile.h"
#include "compiler/fusion/fuse.h"
#include "compiler/libraries/fourier/transform.h"
#include "compiler/libraries/lines.h"
#include "compiler/libraries/operands.h"
#include "compiler/libraries/rows.h"
#include "compiler/lowering/expressions.h"
#include "compiler/passes/transform.h"
#include "compiler/run/size_program.h"
#include "ops/algebra.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/mutex.h"

namespace brasa::compiler {
namespace {

using ir::Expr;
using ir::Node;
using ir::Value;

// Tables of the lengths that were used last: they take longer than a short transform.
template <class T>
std::shared_ptr<const fourier::Transform<T>> transform_of(int64_t length) {
  constexpr size_t kKept = 16;
  static constinit Mutex mutex;
  static constinit Lazy<std::list<std::pair<int64_t, std::shared_ptr<const fourier::Transform<T>>>>> all;
  auto& kept = *all;
  {
    std::lock_guard lock(mutex);
    for (auto it = kept.begin(); it != kept.end(); ++it)
      if (it->first == length) {
        kept.splice(kept.begin(), kept, it);
        return it->second;
      }
  }
  auto made = std::make_shared<const fourier::Transform<T>>(length);
  std::lock_guard lock(mutex);
  kept.emplace_front(length, made);
  if (kept.size() > kKept) kept.pop_back();
  return made;
}

template <class T>
void transform_lines(const LibraryCall& call, const Lines& lines) {
  auto signals = [&](const LibraryTensor& re, const LibraryTensor& im) {
    return fourier::Signals<T>{static_cast<T*>(re.data),
                               static_cast<T*>(im.data),
                               lines.inner,
                               {{lines.outer, lines.length * lines.inner}, {lines.inner, 1}}};
  };
  fourier::Signals<T> in = signals(call.inputs[0], call.inputs[1]), out = signals(call.outputs[0], call.outputs[1]);
  transform_of<T>(lines.length)->run({in, out, lines.count(), lines.length, !call.args[3].get<bool>()});
}

void run(const LibraryCall& call) {
  const LibraryTensor& x = call.inputs[0];
  Lines lines(x.sizes, call.integer(2));
  if (lines.length == 0 || lines.count() == 0) return;
  x.dtype == DType::Float32 ? transform_lines<float>(call, lines) : transform_lines<double>(call, lines);
}

// --- operands and results where they lie ---

bool is_fft(const Node* n) { return n->op->name() == "prim::fft"; }
bool gives_reals(const Node* n) { return n->op->name() == "prim::fft_real"; }
constexpr size_t kScale = 4;  // where prim::fft_real has it
bool any_steps(const Steps&, const ir::Shape&) { return true; }
bool is_zero_below(Value v) { return is_zero(chain_of(v, nullptr, false).back().value); }

// Both parts lie in the same steps of memory, or there is no imaginary one.
bool reads_parts(const Node& n, const Stored& stored) {
  std::optional<std::vector<Expr>> found;
  for (size_t i = 0; i < 2; ++i) {
    Value v = n.arg<Value>(i);
    if (i == 1 && is_zero_below(v)) continue;
    std::vector<Link> chain = chain_of(v, [&](Value x) { return stored.count(x.node) > 0; }, false);
    const auto& [end, at] = chain.back();
    auto it = stored.find(end.node);
    if (it == stored.end()) return false;
    auto steps = steps_at(v, place_of(at, type_of(end).shape, it->second), chain.front().at, any_steps);
    if (!steps || (found && *found != steps->of)) return false;
    found = steps->of;
  }
  return true;
}

void place(ir::Args& args, const ir::Graph& graph, std::unordered_set<Value>& in_memory) {
  auto lies = [&](Value v) {
    return ir::is_input(v) || is_fft(v.node) || gives_reals(v.node) || in_memory.count(v) > 0;
  };
  auto steps_of = [&](Value v) -> std::optional<std::vector<Expr>> {
    std::vector<Link> chain = chain_of(v, lies, false);
    const auto& [end, at] = chain.back();
    if (!lies(end)) return std::nullopt;
    Expr where = ir::is_input(end) ? place_in(graph, end, at) : linearise(at, type_of(end).shape);
    auto steps = steps_at(v, where, chain.front().at, any_steps);
    return steps ? std::optional(steps->of) : std::nullopt;
  };
  Value re = args[0].get<Value>(), im = args[1].get<Value>();
  bool real = is_zero_below(im);
  if (args.size() > kScale && !args[kScale].is_none())
    if (Value scale = args[kScale].get<Value>(); !ir::is_input(scale)) in_memory.insert(scale);
  auto steps = steps_of(re);
  if (steps && (real || steps_of(im) == steps)) return;
  for (size_t i = 0; i < (real ? 1 : 2); ++i) {
    Value v = args[i].get<Value>(), copy = ops::call("prim::reshape", {v, ops::shape_of(v)});
    in_memory.insert(copy);
    args[i] = copy;
  }
}

// The complex numbers that a transform's parts become: the first of each line, by a factor, in any order of dimensions.
struct Joined {
  const Node* fft = nullptr;
  Expr kept = 0;
  bool negative[2] = {};
  bool divides = false;
  Value factor;                      // of rank 0
  std::vector<int64_t> result_dims;  // of each dimension of the transform; -1: none, its size is 1
  std::vector<const Node*> inside;
};

// The dimensions of a reshape's operand among those of its result, where it adds and takes away sizes of 1 alone; these are -1.
std::optional<std::vector<int64_t>> dims_before(const Node* reshape, const std::vector<int64_t>& of_result) {
  const ir::Shape &from = type_of(reshape->arg<Value>(0)).shape, &to = reshape->types[0].shape;
  std::vector<int64_t> out(from.size(), -1);
  size_t d = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i].is(1)) continue;
    while (d < to.size() && to[d].is(1)) ++d;
    if (d == to.size() || to[d] != from[i]) return std::nullopt;
    out[i] = of_result[d++];
  }
  while (d < to.size() && to[d].is(1)) ++d;
  return d == to.size() ? std::optional(out) : std::nullopt;
}

class Matcher {
 public:
  explicit Matcher(const Node& n) {
    if (prim_of(&n) != Prim::Concat) return;
    const auto& parts = n.arg<std::vector<Value>>(0);
    auto last = static_cast<int64_t>(n.types[0].rank()) - 1;
    found_ = parts.size() == 2 && n.arg<Expr>(1).is(last) && last > 0;
    for (uint32_t part = 0; part < 2 && found_; ++part) found_ = follow(parts[part], part);
  }
  std::optional<Joined> result() const { return found_ ? std::optional(j_) : std::nullopt; }

 private:
  bool follow(Value v, uint32_t part) {
    if (!type_of(v).shape.back().is(1)) return false;
    std::vector<int64_t> dims(type_of(v).rank());
    std::iota(dims.begin(), dims.end(), int64_t{0});
    Value factor, slice;
    bool divides = false;
    for (; !is_fft(v.node); v = v.node->arg<Value>(0)) {
      inside(v);
      std::string_view op = v.node->op->name();
      if (op == "prim::neg") {
        j_.negative[part] = !j_.negative[part];
      } else if ((op == "prim::div" || op == "prim::mul") && !factor) {
        Value by = v.node->arg<Value>(1);
        if (prim_of(by) != Prim::Broadcast || type_of(by.node->arg<Value>(0)).rank() != 0) return false;
        factor = by.node->arg<Value>(0);
        divides = op == "prim::div";
      } else if (prim_of(v) == Prim::Slice && !slice) {
        slice = v;
      } else if (prim_of(v) == Prim::Transpose && !slice) {
        std::vector<int64_t> order = int_args(v.node, 1), before(order.size());
        for (size_t d = 0; d < order.size(); ++d) before[order[d]] = dims[d];
        dims = std::move(before);
      } else if (prim_of(v) == Prim::Reshape && !slice) {
        auto before = dims_before(v.node, dims);
        if (!before) return false;
        dims = std::move(*before);
      } else {
        return false;
      }
    }
    int64_t dim = v.node->arg<Expr>(2).constant();
    if (v.index != part || (slice && !first_of_lines(slice, dim))) return false;
    Expr kept = type_of(slice ? slice : v).shape[dim];
    if (part == 0) {
      inside(v);
      j_.fft = v.node, j_.kept = kept, j_.factor = factor, j_.divides = divides, j_.result_dims = dims;
      return true;
    }
    return j_.fft == v.node && j_.kept == kept && j_.factor == factor && j_.divides == divides &&
           j_.result_dims == dims;
  }
  void inside(Value v) {
    if (std::find(j_.inside.begin(), j_.inside.end(), v.node) == j_.inside.end()) j_.inside.push_back(v.node);
  }
  static bool first_of_lines(Value slice, int64_t dim) {
    const ir::Shape &whole = type_of(slice.node->arg<Value>(0)).shape, &kept = type_of(slice).shape;
    for (size_t d = 0; d < whole.size(); ++d) {
      bool along = static_cast<int64_t>(d) == dim;
      if (!slice.node->arg<std::vector<Expr>>(1)[d].is(0) || !slice.node->arg<std::vector<Expr>>(3)[d].is(1) ||
          (!along && whole[d] != kept[d]))
        return false;
    }
    return true;
  }

  bool found_ = false;
  Joined j_;
};

std::optional<Covered> covers_join(const ir::Graph&, const Node& n) {
  auto joined = Matcher(n).result();
  if (!joined) return std::nullopt;
  Covered out{joined->inside, {}};
  if (joined->factor) out.operands.push_back(joined->factor);
  return out;
}
bool reads_joined(const Node& n, const Stored& stored) { return reads_parts(*Matcher(n).result()->fft, stored); }

// Nobody reads the imaginary parts.
std::optional<Covered> covers_real(const ir::Graph& graph, const Node& n) {
  Value im{const_cast<Node*>(&n), 1};
  bool read = false;
  for (const ir::Output& o : graph.outputs()) read |= o.value == im;
  for (const Node* user : graph.nodes()) user->for_each_input([&](Value v) { read |= v == im; });
  return read ? std::nullopt : std::optional(Covered{});
}

class FourierCall final : public DeviceCall {
 public:
  explicit FourierCall(const Group& g) {
    const Node& last = *g.graph->outputs()[0].value.node;
    if (auto joined = Matcher(last).result()) joined_ = *joined;
    const Node& n = joined_.fft ? *joined_.fft : last;
    const ir::Type& type = n.types[0];
    double_ = type.dtype == DType::Float64;
    dim_ = static_cast<size_t>(n.arg<Expr>(2).constant());
    from_half_ = gives_reals(&n);
    backward_ = from_half_ || !n.arg<bool>(3);
    for (Expr e : type.shape) sizes_.emplace_back(e);
    kept_ = SizeProgram(joined_.fft ? joined_.kept : type.shape[dim_]);
    size_t inputs = g.graph->inputs().size();
    for (size_t i = 0; i < 2; ++i) {
      Value v = n.arg<Value>(i);
      if (i == 1 && is_zero_below(v)) continue;
      Source source = source_of(g, v, any_steps);
      in_.emplace_back(source.input, type.dtype, source.steps);
    }
    Value factor = from_half_ && !n.args[kScale].is_none() ? n.arg<Value>(kScale) : joined_.factor;
    if (factor) factor_ = g.graph->input_index(factor);
    BRASA_ASSERT(!factor || factor_ >= 0, "a transform's factor is not in memory");
    auto strides = [&](size_t o) {
      return g.output_strides[o].empty() ? ir::contiguous_strides(type_of(g.graph->outputs()[o].value).shape)
                                         : g.output_strides[o];
    };
    if (joined_.fft) {
      std::vector<Expr> of_result = strides(0), steps;
      for (int64_t d : joined_.result_dims) steps.push_back(d < 0 ? Expr(0) : of_result[d]);
      Expr part = of_result.back();
      out_ = {Located(inputs, type.dtype, {0, steps}), Located(inputs, type.dtype, {part, steps})};
      return;
    }
    bool real = from_half_ || g.library->covers != nullptr;
    for (size_t o = 0; o < (real ? 1 : 2); ++o) out_.emplace_back(inputs + o, type.dtype, Steps{0, strides(o)});
  }

  void run(runtime::Device&, runtime::Stream, void* const* tensors, const int64_t* symbols) const override {
    double_ ? run_as<double>(tensors, symbols) : run_as<float>(tensors, symbols);
  }

 private:
  template <class T>
  fourier::Signals<T> signals(const std::vector<Located>& parts, void* const* tensors, const int64_t* s) const {
    auto at = [&](size_t i) -> T* {
      return i < parts.size() ? reinterpret_cast<T*>(parts[i].data(tensors, s)) : nullptr;
    };
    fourier::Signals<T> out{at(0), at(1), parts[0].steps[dim_](s), {}};
    for (size_t d = 0; d < sizes_.size(); ++d) {
      int64_t size = sizes_[d](s), step = parts[0].steps[d](s);
      if (d == dim_ || size == 1) continue;
      if (!out.along.empty() && out.along.back().step == size * step)
        out.along.back() = {out.along.back().size * size, step};
      else
        out.along.push_back({size, step});
    }
    return out;
  }

  template <class T>
  void run_as(void* const* tensors, const int64_t* s) const {
    int64_t lines = 1, length = sizes_[dim_](s);
    for (size_t d = 0; d < sizes_.size(); ++d)
      if (d != dim_) lines *= sizes_[d](s);
    if (lines == 0 || length == 0) return;
    T factor = factor_ >= 0 ? *static_cast<const T*>(tensors[factor_]) : T(1);
    if (joined_.divides) factor = T(1) / factor;
    fourier::Request<T> r{signals<T>(in_, tensors, s), signals<T>(out_, tensors, s), lines, kept_(s), backward_};
    r.from_half = from_half_;
    r.re_factor = joined_.negative[0] ? -factor : factor;
    r.im_factor = joined_.negative[1] ? -factor : factor;
    transform_of<T>(length)->run(r);
  }

  Joined joined_;
  bool double_ = false, backward_ = false, from_half_ = false;
  size_t dim_ = 0;
  std::vector<SizeProgram> sizes_;
  SizeProgram kept_;
  std::vector<Located> in_, out_;
  int factor_ = -1;  // of the inputs
};

std::unique_ptr<DeviceCall> prepare(const Group& g, const CompilerOptions&, ir::Facts&) {
  return std::make_unique<FourierCall>(g);
}

}  // namespace

const Implementation kFft = {.library = "host", .name = "fourier", .primitive = "prim::fft", .run = run};
const Implementation kFftInPlace = {.library = "fourier",
                                    .name = "fourier",
                                    .primitive = "prim::fft",
                                    .prepare = prepare,
                                    .place = place,
                                    .reads = reads_parts};
const Implementation kFftFromHalf = {.library = "fourier",
                                     .name = "fourier of half the frequencies",
                                     .primitive = "prim::fft_real",
                                     .prepare = prepare,
                                     .place = place,
                                     .reads = reads_parts};
const Implementation kFftReal = {.library = "fourier",
                                 .name = "fourier of real results",
                                 .primitive = "prim::fft",
                                 .covers = covers_real,
                                 .prepare = prepare,
                                 .reads = reads_parts};
const Implementation kFftJoined = {.library = "fourier",
                                   .name = "fourier of complex results",
                                   .primitive = "prim::concat",
                                   .covers = covers_join,
                                   .prepare = prepare,
                                   .reads = reads_joined};

}  // namespace brasa::compiler
