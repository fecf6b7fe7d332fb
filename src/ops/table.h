#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ops/facts.h"
#include "ops/number.h"
#include "ops/sample.h"
#include "ops/scalar_op.h"

namespace brasa::ops {

using ir::Arg;
using ir::Args;
using ir::Expr;
using ir::Node;
using ir::Shape;
using ir::Type;
using ir::Value;

/// A tensor of the reference interpreter: contiguous, row-major, on the heap.
struct Array {
  DType dtype = DType::Float32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
  int64_t numel() const;
};

/// Where a view lies in its storage, in elements. One movement primitive maps one to another.
struct Strided {
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
};

/// Result types from arguments; brasa::Error for what a user may have given wrong.
using TypeRule = std::function<std::vector<Type>(const Args&)>;
/// Evaluation in the interpreter; args[i] belongs to operand i in order (Node::inputs), node.args has constant sizes.
using Eval = std::function<std::vector<Array>(const Node& node, std::span<const Array* const> inputs)>;
/// ∂out/∂(operand i) of a point-wise primitive; an absent Value means zero.
using Partial = std::function<Value(size_t operand, std::span<const Value> in, Value out)>;
/// The transpose of a primitive that is linear in operand i: the cotangent of that operand from `ct`.
using Transpose = std::function<Value(size_t operand, const Node& node, Value ct)>;
/// A whole derivative: cotangents of the operands (in the order of Node::inputs) from those of the results; both may hold
/// absent Values, meaning zero. `needs[i]` says whether operand i's is wanted.
using Vjp =
    std::function<std::vector<Value>(const Node& node, std::span<const Value> cts, const std::vector<bool>& needs)>;
/// Builds the results from the arguments with the current Builder.
using Compose = std::function<std::vector<Value>(const Args&)>;
/// Throws where the numbers among the arguments of a call are wrong.
using Precondition = std::function<void(const Args&)>;
/// The view that a movement primitive gives, or nothing where it has to copy (a reshape that strides cannot express).
using ViewRule = std::function<std::optional<Strided>(const Args& args, const Strided& in)>;

/// Where a view (Kind) reads its operand for the result's element at `index`.
using IndexRule = std::function<std::vector<Expr>(const Node& node, const std::vector<Expr>& index)>;
/// An operation of two integers on symbolic ones; nothing where no expression stands for it.
using Symbolic = std::optional<Expr> (*)(Expr a, Expr b);
/// The tangents of the results from those of the operands; absent Values mean zero, in both directions.
using Jvp = std::function<std::vector<Value>(const Node& node, std::span<const Value> tangents)>;
/// The results for `operands` of which those that `mapped` marks have one more dimension, of size `count`, in front. All results
/// have it too.
using Batch = std::function<std::vector<Value>(const Node& node, std::span<const Value> operands,
                                               const std::vector<bool>& mapped, Expr count)>;

/// What a primitive does to elements. Composed rows and inputs of a graph are not in it.
enum class Kind : uint8_t {
  None,   // a composed row
  Input,  // of a graph
  // Leaves: no data, or an index alone decides.
  Full,
  Iota,
  SizeValue,
  Pointwise,  // out[i] depends on in[i] alone
  // Views: each element is one of the first operand's, at an index that only depends on its own.
  Broadcast,
  Reshape,
  Transpose,
  Slice,
  Reverse,
  Window,
  Later,
  Pad,
  Concat,
  Gather,
  Scatter,
  Reduce,
  ArgReduce,
  Scan,
  Whole,  // each result depends on whole operands: a function computes it, no loops (compiler/libraries)
  Dot,
  Convolution,
  Loop,  // control flow: its bodies say what it does
};
constexpr bool is_leaf(Kind k) { return k >= Kind::Full && k <= Kind::SizeValue; }
constexpr bool is_view(Kind k) { return k >= Kind::Broadcast && k <= Kind::Later; }

/// How a primitive that is linear in its operands is so.
enum class Linear : uint8_t {
  Together,  // f(a + b, c + d) = f(a, c) + f(b, d)
  Each,      // in each operand while the others stay: a product
};

/// One row of the table: the only place where an operator is described.
struct Row final : ir::Op {
  std::string doc;
  std::vector<Sample> samples;

  Compose compose;  // a composed operator; exactly one of `compose` and `type` is set
  Precondition precondition;
  /// Where the results' size follows from numbers among the arguments: gives it, or -1 if `count` has to. `counted` is the composition
  /// of transforms::sized_row and takes it as one more argument; so numbers that are no integers need not be known.
  std::function<int64_t(const Args&)> number_count;
  Compose counted;
  /// Where the results' size depends on values: gives that size, a rank-0 int64 value, which `compose` takes as one more
  /// argument (an Expr). Dispatch runs it first; graphs hold the rows of transforms::count_row and sized_row.
  Compose count;
  bool counts = false;  // a vector of sizes, which `compose` takes as a Shape
  /// Bounds on what operands hold, a vector, behind which `bounded` computes nothing; it takes them as one more argument (a Shape). An
  /// eager call reads them first, and runs sized_row; graphs hold the row itself, which goes without.
  Compose bounds, bounded;

  TypeRule type;  // a primitive
  Eval eval;
  Partial partial;
  Transpose transposed;
  Linear linear = Linear::Together;
  Jvp jvp;  // where it follows neither from partials nor from linearity
  Batch batch;
  ViewRule view_rule;
  IndexRule index_rule;

  Vjp vjp;  // of a primitive that is neither point-wise nor linear, or a composed row's own derivative

  Kind kind = Kind::None;
  ScalarOp scalar = ScalarOp::None;  // of a point-wise primitive
  int work = 1;                      // of one element, in additions
  Symbolic symbolic = nullptr;
  bool dense = false;        // a view of all elements of its operand, each once
  bool commutative = false;  // of two operands
  bool costly = false;       // reading the result again costs less than making it again
  bool any_dtype = false;    // also of dtypes that operators do not compute with; so are leaves and views
  bool view = false;         // composed of movement primitives of its first operand: gives an alias where strides allow
  int itself_unless = -1;    // the number of a parameter, see below
  uint8_t memory_format = 0;    // how many operands say how results lie, see keeps_memory_format
  std::string must_alias;       // of a view that never copies: what to say where strides do not allow an alias
  bool over_storage = false;    // a view of the memory behind its operand, elements between those of the operand too
  bool random = false;          // takes the Philox key as its last argument, and numel(result 0) numbers
  bool no_gradient = false;     // the results never carry gradients
  bool not_in_pytorch = false;  // PyTorch has no operator of this name
  bool masks = false;           // the indices may be masks: the result's size depends on their values
  uint32_t fitting = 0;         // numbers that the result's dtype has to hold: a bit for each parameter
  Autocast autocast = Autocast::None;  // of operands on CPUs
  Sparse sparse = Sparse::None;
  Memory memory = Memory::None;
  Autocast autocast_on_gpus = Autocast::None;  // PyTorch has a list of its own for CUDA
  Out out = Out::Own;
  std::string backward_node;  // of a row that PyTorch composes of others: the node that comes last there
  bool gradients_together =
      false;         // PyTorch computes them by one operator: with create_graph all have a history where one has
  int overload = 0;  // how many rows with the same base are in front of this one
  std::vector<Sample> packed;  // calls whose kernels the pack ships; point-wise rows need none

  bool is_primitive() const { return static_cast<bool>(type); }
  bool is_pointwise() const { return kind == Kind::Pointwise; }

  bool legal_at(ir::Level level) const override;
  std::optional<std::vector<Type>> infer(const Args& args) const override;
  bool commutes() const override { return commutative; }
};

namespace detail {

// How an argument reaches a composition's parameter of C++ type T.
template <class T>
struct From {
  static const T& get(const Arg& a) { return a.get<T>(); }
};
template <>
struct From<Value> {  // also absent
  static Value get(const Arg& a) { return a.is_none() ? Value{} : a.get<Value>(); }
};
template <>
struct From<int64_t> {
  static int64_t get(const Arg& a) { return a.get<Expr>().constant(); }
};
template <>
struct From<std::vector<int64_t>> {
  static std::vector<int64_t> get(const Arg& a) {
    std::vector<int64_t> out;
    for (Expr e : a.get<std::vector<Expr>>()) out.push_back(e.constant());
    return out;
  }
};
template <>
struct From<double> {
  static double get(const Arg& a) {
    if (auto* e = a.get_if<Expr>()) return static_cast<double>(e->constant());
    return a.get<double>();
  }
};
template <>
struct From<Number> {
  static Number get(const Arg& a) { return Number(a); }
};
template <class T>
struct From<std::optional<T>> {
  static std::optional<T> get(const Arg& a) {
    if (a.is_none()) return std::nullopt;
    return From<T>::get(a);
  }
};

inline std::vector<Value> results(Value v) { return {v}; }
inline std::vector<Value> results(std::vector<Value> v) { return v; }
template <size_t N>
std::vector<Value> results(const std::array<Value, N>& v) {
  return {v.begin(), v.end()};
}

template <class R, class... P, class F, size_t... I>
std::vector<Value> call(const F& f, const Args& args, std::index_sequence<I...>) {
  return results(f(From<std::decay_t<P>>::get(args[I])...));
}

// The C++ type of a composition's parameter says how a graph takes it.
template <class T>
constexpr ir::NumberUse number_use = std::is_same_v<T, Expr> || std::is_same_v<T, Shape> ? ir::NumberUse::Size
                                     : std::is_same_v<T, Number>                         ? ir::NumberUse::Input
                                                                                         : ir::NumberUse::Known;
template <class T>
constexpr ir::NumberUse number_use<std::optional<T>> = number_use<T>;

template <class F>
struct Signature;
template <class R, class... P>
struct Signature<R (*)(P...)> {
  static std::vector<ir::NumberUse> uses() { return {number_use<std::decay_t<P>>...}; }
  static constexpr size_t kParams = sizeof...(P);
  static constexpr bool kTakesShape = [] {  // as its last parameter
    bool last = false;
    ((last = std::is_same_v<std::decay_t<P>, Shape>), ...);
    return last;
  }();
  template <class F>
  static Compose compose(F f) {
    return [f](const Args& args) { return call<R, P...>(f, args, std::index_sequence_for<P...>()); };
  }
  template <class F>
  static std::function<R(const Args&)> on_numbers(F f) {
    return [f](const Args& args) {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return f(From<std::decay_t<P>>::get(args[I])...);
      }(std::index_sequence_for<P...>());
    };
  }
};

}  // namespace detail

/// Fills a row in; each call sets one fact.
class RowBuilder {
 public:
  explicit RowBuilder(Row& row) : row_(row) {}
  RowBuilder& doc(std::string text);
  /// `f` takes the schema's parameters as Value (absent if None), std::vector<Value>, Expr, Shape, int64_t, double, bool,
  /// std::string, DType, Number, or std::optional of these, and gives Value, std::array<Value, n> or std::vector<Value>.
  template <class F>
  RowBuilder& composed(F f) {
    using S = detail::Signature<std::decay_t<decltype(+f)>>;
    check_parameters(S::kParams);
    set_uses(S::uses());
    return set_compose(S::compose(+f));
  }
  /// What the numbers of a call must be: `f` takes the schema's parameters as `composed` does (tensors are absent), and throws. It
  /// runs before a call, and where a composition sees literals.
  template <class F>
  RowBuilder& precondition(F f) {
    using S = detail::Signature<std::decay_t<decltype(+f)>>;
    check_parameters(S::kParams);
    row_.precondition = S::on_numbers(+f);
    return *this;
  }
  /// A call gives its first operand itself where this bool is false.
  RowBuilder& itself_unless(std::string_view parameter);
  /// Parameters that a graph is made for one value of, although the composition takes them as symbols: code for unknown ones is slow.
  RowBuilder& known(std::initializer_list<std::string_view> parameters);
  /// See ir::Param::special.
  RowBuilder& special(std::string_view parameter, std::vector<double> numbers);
  /// A row whose results' size follows from numbers: `count` takes the schema's parameters as `precondition` does and gives that
  /// size; `f` takes it as a last parameter more, an Expr. Behind `sized`: -1 where the size depends on values.
  template <class C, class F>
  RowBuilder& counted(C count, F f) {
    using Count = detail::Signature<std::decay_t<decltype(+count)>>;
    using S = detail::Signature<std::decay_t<decltype(+f)>>;
    check_parameters(Count::kParams);
    check_parameters(S::kParams - 1);
    row_.number_count = Count::on_numbers(+count);
    row_.counted = S::compose(+f);
    return *this;
  }
  /// As `composed`; float16 and bfloat16 tensors are computed in float32 and the floating results rounded once.
  template <class F>
  RowBuilder& composed_in_opmath(F f) {
    composed(f);
    return wrap_in_opmath();
  }
  /// For results whose size depends on values: `count` takes the schema's parameters and gives that size, a rank-0 int64
  /// value, or several as a vector; `f` takes it as a last parameter more, an Expr or a Shape.
  template <class C, class F>
  RowBuilder& sized(C count, F f) {
    using Count = detail::Signature<std::decay_t<decltype(+count)>>;
    using S = detail::Signature<std::decay_t<decltype(+f)>>;
    check_parameters(Count::kParams);
    check_parameters(S::kParams - 1);
    std::vector<ir::NumberUse> uses = S::uses();
    uses.pop_back();  // the count
    set_uses(uses);
    row_.count = Count::compose(+count);
    row_.counts = S::kTakesShape;
    return set_compose(S::compose(+f));
  }
  /// Where operands' values save work: `bounds` takes the schema's parameters and gives an int64 vector, `f` takes it as a last
  /// parameter more, a Shape. Behind `composed`.
  template <class C, class F>
  RowBuilder& bounded(C bounds, F f) {
    using Bounds = detail::Signature<std::decay_t<decltype(+bounds)>>;
    using S = detail::Signature<std::decay_t<decltype(+f)>>;
    static_assert(S::kTakesShape);
    check_parameters(Bounds::kParams);
    check_parameters(S::kParams - 1);
    row_.bounds = Bounds::compose(+bounds);
    row_.bounded = S::compose(+f);
    row_.counts = true;
    return *this;
  }
  /// The tensors among these parameters must have one dtype; call it after `composed`.
  RowBuilder& one_dtype(std::initializer_list<std::string_view> parameters);
  RowBuilder& samples(std::vector<Sample> s);
  RowBuilder& type(TypeRule rule);
  RowBuilder& eval(Eval rule);
  RowBuilder& kind(Kind kind);
  RowBuilder& pointwise(int work = 1);
  RowBuilder& symbolic(Symbolic f);
  RowBuilder& dense();
  RowBuilder& commutative();
  RowBuilder& costly();
  RowBuilder& any_dtype();
  RowBuilder& partial(Partial rule);
  RowBuilder& transposed(Transpose rule, Linear linear = Linear::Together);
  RowBuilder& jvp(Jvp rule);
  RowBuilder& batched(Batch rule);
  RowBuilder& index_rule(IndexRule rule);
  RowBuilder& vjp(Vjp rule);
  RowBuilder& view_rule(ViewRule rule);
  RowBuilder& view();
  /// As `view`, and where strides allow no alias the call is an error that begins with `otherwise`.
  RowBuilder& view(std::string otherwise);
  RowBuilder& over_storage();
  RowBuilder&
  random();  // adds the parameter `Generator? generator=None` if the schema has none; call it before composed
  RowBuilder& no_gradient();
  RowBuilder& not_in_pytorch();
  RowBuilder& masks();
  RowBuilder& fits(std::string_view parameter);  // each call adds one
  RowBuilder& out(Out dtype);
  RowBuilder& autocast(Autocast policy);
  RowBuilder& autocast(Autocast cpu, Autocast gpu);
  RowBuilder& sparse(Sparse form);
  RowBuilder& memory(Memory what);
  RowBuilder& backward_node(std::string name);
  RowBuilder& gradients_together();
  /// Results lie with their channels last where one of the first `operands` does, tensors of a list where all do: PyTorch's memory
  /// formats.
  RowBuilder& keeps_memory_format(uint8_t operands = 1);
  RowBuilder& packed(std::vector<Sample> calls);

 private:
  void check_parameters(size_t n);
  ir::Param& parameter(std::string_view name);
  void set_uses(const std::vector<ir::NumberUse>& uses);
  RowBuilder& set_compose(Compose f);
  RowBuilder& wrap_in_opmath();
  Row& row_;
};

class Table {
 public:
  /// A row of PyTorch's table: "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
  RowBuilder op(std::string_view schema);
  /// A primitive; "tanh(Tensor x) -> Tensor" is named prim::tanh.
  RowBuilder prim(std::string_view schema);
  /// "aten::clip" with the parameters and the composition of an existing row.
  void alias(std::string_view name, std::string_view of);

  const Row* find(std::string_view name) const;
  const std::deque<Row>& rows() const { return rows_; }

 private:
  Row& add(std::string_view schema);
  void enter(Row& row);
  std::deque<Row> rows_;
  std::unordered_map<std::string, Row*> by_name_;
  std::unordered_map<std::string, int> overloads_;
};

/// The one table, made on first use from the families in families.cpp.
const Table& table();
/// "aten::add.Tensor", "prim::tanh"; null if there is none. "aten::gelu.default" finds aten::gelu.
const Row* find(std::string_view name);
/// brasa::Error if there is none.
const Row& at(std::string_view name);

inline const Row& row_of(const Node& n) { return static_cast<const Row&>(*n.op); }
/// Kind::Input for a graph's input too.
inline Kind kind_of(const Node& n) { return n.op == ir::input_op() ? Kind::Input : row_of(n).kind; }

}  // namespace brasa::ops
