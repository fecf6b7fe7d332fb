#include "export/archive_primitives.h"

#include <algorithm>
#include <map>

#include "export/node_writer.h"
#include "import/types.h"
#include "support/error.h"
#include "support/lazy.h"

namespace brasa::exporting {
namespace {

using ir::Expr;
using ir::Shape;
using ir::Type;
using ir::Value;

// Point-wise primitives that PyTorch has under this name, of (self), (self, other) or others.
const std::map<std::string_view, const char*> kUnary{
    {"neg", "neg.default"},
    {"abs", "abs.default"},
    {"sign", "sign.default"},
    {"floor", "floor.default"},
    {"ceil", "ceil.default"},
    {"round", "round.default"},
    {"trunc", "trunc.default"},
    {"exp", "exp.default"},
    {"exp2", "exp2.default"},
    {"expm1", "expm1.default"},
    {"log", "log.default"},
    {"log2", "log2.default"},
    {"log10", "log10.default"},
    {"log1p", "log1p.default"},
    {"sin", "sin.default"},
    {"cos", "cos.default"},
    {"tan", "tan.default"},
    {"asin", "asin.default"},
    {"acos", "acos.default"},
    {"atan", "atan.default"},
    {"sinh", "sinh.default"},
    {"cosh", "cosh.default"},
    {"tanh", "tanh.default"},
    {"asinh", "asinh.default"},
    {"acosh", "acosh.default"},
    {"atanh", "atanh.default"},
    {"sqrt", "sqrt.default"},
    {"rsqrt", "rsqrt.default"},
    {"erf", "erf.default"},
    {"erfc", "erfc.default"},
    {"erfinv", "erfinv.default"},
    {"lgamma", "lgamma.default"},
    {"digamma", "digamma.default"},
    {"bit_not", "bitwise_not.default"},
    {"real", "real.default"},
    {"imag", "imag.default"},
    {"as_real", "view_as_real.default"},
    {"as_complex", "view_as_complex.default"},
};
const std::map<std::string_view, const char*> kBinary{
    {"add", "add.Tensor"},
    {"sub", "sub.Tensor"},
    {"mul", "mul.Tensor"},
    {"div", "div.Tensor"},
    {"rem", "fmod.Tensor"},
    {"pow", "pow.Tensor_Tensor"},
    {"atan2", "atan2.default"},
    {"max", "maximum.default"},
    {"min", "minimum.default"},
    {"nextafter", "nextafter.default"},
    {"bit_and", "bitwise_and.Tensor"},
    {"bit_or", "bitwise_or.Tensor"},
    {"bit_xor", "bitwise_xor.Tensor"},
    {"shl", "bitwise_left_shift.Tensor"},
    {"shr", "bitwise_right_shift.Tensor"},
    {"eq", "eq.Tensor"},
    {"ne", "ne.Tensor"},
    {"lt", "lt.Tensor"},
    {"le", "le.Tensor"},
    {"gt", "gt.Tensor"},
    {"ge", "ge.Tensor"},
};

Json a_dtype(DType t) { return {{"as_scalar_type", import::archive_number_of(t)}}; }
Json ints(const std::vector<int64_t>& list) { return {{"as_ints", list}}; }
Expr product(const Shape& shape, size_t first, size_t last) {
  Expr out = 1;
  for (size_t i = first; i < last; ++i) out = out * shape[i];
  return out;
}

class Writer : NodeWriter {
 public:
  using NodeWriter::NodeWriter;

  Names write() {
    std::string_view kind = n_.op->schema.name;
    kind.remove_prefix(kind.find("::") + 2);
    if (auto at = kUnary.find(kind); at != kUnary.end()) return {aten(at->second, {{"self", of(0)}}, n_.types[0])};
    if (kind == "div" && is_integral(type(0).dtype, true))
      return {aten("div.Tensor_mode",
                   {{"self", of(0)}, {"other", of(1)}, {"rounding_mode", {{"as_string", "trunc"}}, true}},
                   n_.types[0])};
    if (auto at = kBinary.find(kind); at != kBinary.end())
      return {aten(at->second, {{"self", of(0)}, {"other", of(1)}}, n_.types[0])};
    using Write = Names (Writer::*)();
    static constinit Lazy<std::map<std::string_view, Write>> kOthers([] {
      return std::map<std::string_view, Write>{
          {"select", &Writer::select},
          {"convert", &Writer::convert},
          {"bitcast", &Writer::bitcast},
          {"complex", &Writer::complex},
          {"full", &Writer::full},
          {"iota", &Writer::iota},
          {"size_value", &Writer::size_value},
          {"broadcast", &Writer::broadcast},
          {"reshape", &Writer::reshape},
          {"transpose", &Writer::transpose},
          {"slice", &Writer::slice},
          {"pad", &Writer::pad},
          {"concat", &Writer::concat},
          {"reverse", &Writer::reverse},
          {"window", &Writer::window},
          {"gather", &Writer::gather},
          {"scatter", &Writer::scatter},
          {"reduce", &Writer::reduce},
          {"arg_reduce", &Writer::arg_reduce},
          {"scan", &Writer::scan},
          {"sort", &Writer::sort},
          {"dot_general", &Writer::dot_general},
          {"convolution", &Writer::convolution},
      };
    });
    auto at = kOthers->find(kind);
    if (at == kOthers->end()) refuse();
    return (this->*at->second)();
  }

 private:
  [[noreturn]] void refuse() const { fail(str("export: ", n_.op->schema.name, " has no form in PyTorch's operators")); }
  void must(bool ok) const {
    if (!ok) refuse();
  }

  std::vector<Expr> exprs(size_t i) const { return n_.arg<std::vector<Expr>>(i); }
  std::vector<int64_t> dims(size_t i) const {
    std::vector<int64_t> out;
    for (Expr e : exprs(i)) out.push_back(e.constant());
    return out;
  }
  Type like(const Type& t, Shape shape) const { return {t.dtype, std::move(shape), false}; }

  // ---- Steps of several primitives: each takes and gives a name with its type.
  struct Named {
    std::string name;
    Type type;
  };
  Named operand(Value v) const { return {name_of_(v), ir::type_of(v)}; }
  Named reshaped(const Named& x, Shape shape) {
    if (x.type.shape == shape) return x;
    Type t = like(x.type, shape);
    return {aten("reshape.default", {{"self", of(x.name)}, {"shape", to_.integers(shape)}}, t), t};
  }
  Named expanded(const Named& x, Shape shape) {
    if (x.type.shape == shape) return x;
    Type t = like(x.type, shape);
    return {aten("expand.default", {{"self", of(x.name)}, {"size", to_.integers(shape)}}, t), t};
  }
  Named permuted(const Named& x, const std::vector<int64_t>& order) {
    if (std::is_sorted(order.begin(), order.end())) return x;
    Shape shape;
    for (int64_t d : order) shape.push_back(x.type.shape[d]);
    Type t = like(x.type, shape);
    return {aten("permute.default", {{"self", of(x.name)}, {"dims", ints(order)}}, t), t};
  }
  Named sliced(const Named& x, int64_t d, Expr start, Expr size, Expr step) {
    if (start.is(0) && step.is(1) && size == x.type.shape[d]) return x;
    Type t = x.type;
    t.shape[d] = size;
    return {aten("slice.Tensor",
                 {{"self", of(x.name)},
                  {"dim", an_int(d)},
                  {"start", to_.integer(start)},
                  {"end", to_.integer(start + size * step)},
                  {"step", to_.integer(step)}},
                 t),
            t};
  }
  // Values around each dimension, or where they are negative, elements less.
  Named padded(const Named& x, const std::vector<Expr>& low, const std::vector<Expr>& high, const Json& number) {
    bool nothing = true;
    std::vector<Expr> pads;
    Type t = x.type;
    for (size_t d = t.shape.size(); d-- > 0;) {
      nothing = nothing && low[d].is(0) && high[d].is(0);
      pads.push_back(low[d]);
      pads.push_back(high[d]);
      t.shape[d] = t.shape[d] + low[d] + high[d];
    }
    if (nothing) return x;
    return {aten("constant_pad_nd.default", {{"self", of(x.name)}, {"pad", to_.integers(pads)}, {"value", number}}, t),
            t};
  }
  // So many between any two.
  Named spread(Named x, const std::vector<Expr>& interior, const Json& number) {
    for (size_t d = 0; d < interior.size(); ++d) {
      if (interior[d].is(0)) continue;
      Shape apart = x.type.shape, together = x.type.shape;
      apart.insert(apart.begin() + static_cast<int64_t>(d) + 1, 1);
      std::vector<Expr> low(apart.size(), 0), high(apart.size(), 0);
      high[d + 1] = interior[d];
      together[d] = together[d] * (interior[d] + 1);
      Expr size = together[d] - interior[d];
      x = sliced(reshaped(padded(reshaped(x, apart), low, high, number), together), static_cast<int64_t>(d), 0, size,
                 1);
    }
    return x;
  }
  Json literal(const ir::Arg& a) {
    if (const auto* e = a.get_if<Expr>()) return to_.integer(*e);
    if (const auto* b = a.get_if<bool>()) return a_bool(*b);
    if (const auto* d = a.get_if<double>()) return {{"as_float", ArchiveNodes::number(*d)}};
    if (const auto* z = a.get_if<std::complex<double>>()) return ArchiveNodes::complex_number(*z);
    refuse();
  }

  // ---- Primitives.
  Names select() {
    return {aten("where.self", {{"condition", of(0)}, {"self", of(1)}, {"other", of(2)}}, n_.types[0])};
  }
  std::string converted(const std::string& name, const Type& to) {
    return aten("_to_copy.default", {{"self", of(name)}, {"dtype", a_dtype(to.dtype), true}}, to);
  }
  Names convert() { return {converted(name_of_(value(0)), n_.types[0])}; }
  Names bitcast() {
    return {aten("view.dtype", {{"self", of(0)}, {"dtype", a_dtype(n_.types[0].dtype)}}, n_.types[0])};
  }
  Names complex() { return {aten("complex.default", {{"real", of(0)}, {"imag", of(1)}}, n_.types[0])}; }
  Names full() {
    const Type& t = n_.types[0];
    if (const auto* v = n_.args[0].get_if<Value>()) {
      Type scalar = like(t, {});
      return {expanded({converted(name_of_(*v), scalar), scalar}, t.shape).name};
    }
    return {aten(
        "full.default",
        {{"size", to_.integers(t.shape)}, {"fill_value", literal(n_.args[0])}, {"dtype", a_dtype(t.dtype), true}}, t)};
  }
  Names iota() {
    const Type& t = n_.types[0];
    int64_t d = n_.arg<Expr>(1).constant();
    Shape ones(t.shape.size(), 1), line = {t.shape[d]};
    ones[d] = t.shape[d];
    Type one = like(t, line);
    Named range{aten("arange.default", {{"end", to_.integer(line[0])}, {"dtype", a_dtype(t.dtype), true}}, one), one};
    return {expanded(reshaped(range, ones), t.shape).name};
  }
  Names size_value() {
    return {aten("scalar_tensor.default", {{"s", to_.integer(n_.arg<Expr>(0))}, {"dtype", a_dtype(DType::Int64), true}},
                 n_.types[0])};
  }
  // Two dimensions that go to one give their diagonal, or the longer one if the other is of size 1.
  Named diagonal(const Named& x, std::vector<int64_t>& places, int64_t i, int64_t j) {
    Shape shape = x.type.shape;
    for (int64_t one : {j, i})
      if (shape[one].is(1)) {
        shape.erase(shape.begin() + one);
        places.erase(places.begin() + one);
        return reshaped(x, shape);
      }
    Type t = x.type;
    t.shape.push_back(shape[i]);
    places.push_back(places[i]);
    for (int64_t d : {j, i}) {
      t.shape.erase(t.shape.begin() + d);
      places.erase(places.begin() + d);
    }
    return {aten("diagonal.default",
                 {{"self", of(x.name)}, {"offset", an_int(0)}, {"dim1", an_int(i)}, {"dim2", an_int(j)}}, t),
            t};
  }
  Names broadcast() {
    std::vector<int64_t> places = dims(2), order;
    Named x = operand(value(0));
    for (size_t i = 0; i < places.size();) {
      auto again = std::find(places.begin() + static_cast<int64_t>(i) + 1, places.end(), places[i]);
      if (again == places.end())
        ++i;
      else
        x = diagonal(x, places, static_cast<int64_t>(i), again - places.begin());
    }
    Shape ones(n_.types[0].shape.size(), 1);
    for (size_t i = 0; i < places.size(); ++i) {
      ones[places[i]] = x.type.shape[i];
      order.push_back(static_cast<int64_t>(i));
    }
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return places[a] < places[b]; });
    return {expanded(reshaped(permuted(x, order), ones), n_.types[0].shape).name};
  }
  Names reshape() { return {reshaped(operand(value(0)), n_.types[0].shape).name}; }
  Names transpose() { return {permuted(operand(value(0)), dims(1)).name}; }
  Names slice() {
    Named x = operand(value(0));
    for (size_t d = 0; d < x.type.shape.size(); ++d)
      x = sliced(x, static_cast<int64_t>(d), exprs(1)[d], exprs(2)[d], exprs(3)[d]);
    return {x.name};
  }
  Names pad() {
    const ir::Node* number = value(1).node;
    must(number->op->schema.name == "prim::full");
    Json filling = literal(number->args[0]);
    return {padded(spread(operand(value(0)), exprs(4), filling), exprs(2), exprs(3), filling).name};
  }
  Names concat() {
    Json list = Json::array();
    for (Value v : n_.arg<std::vector<Value>>(0)) list.push_back({{"name", name_of_(v)}});
    return {aten("cat.default", {{"tensors", {{"as_tensors", list}}}, {"dim", an_int(n_.arg<Expr>(1).constant())}},
                 n_.types[0])};
  }
  Names reverse() { return {aten("flip.default", {{"self", of(0)}, {"dims", ints(dims(1))}}, n_.types[0])}; }
  Names window() {
    int64_t d = n_.arg<Expr>(1).constant();
    Expr size = n_.arg<Expr>(2), step = n_.arg<Expr>(3), dilation = n_.arg<Expr>(4), reach = (size - 1) * dilation + 1;
    Type t = n_.types[0];
    t.shape.back() = reach;
    Named x{
        aten("unfold.default",
             {{"self", of(0)}, {"dimension", an_int(d)}, {"size", to_.integer(reach)}, {"step", to_.integer(step)}}, t),
        t};
    return {sliced(x, t.rank() - 1, 0, size, dilation).name};
  }

  // These dimensions first, then the others.
  static std::vector<int64_t> in_front(const std::vector<int64_t>& first, int64_t rank) {
    std::vector<int64_t> out = first;
    for (int64_t d = 0; d < rank; ++d)
      if (std::find(first.begin(), first.end(), d) == first.end()) out.push_back(d);
    return out;
  }
  Json indices(size_t i) const {
    Json list = Json::array();
    for (Value v : n_.arg<std::vector<Value>>(i)) list.push_back(of(v));
    return {{"as_optional_tensors", list}};
  }
  Names gather() {
    Named x = permuted(operand(value(0)), in_front(dims(2), type(0).rank()));
    return {aten("index.Tensor", {{"self", of(x.name)}, {"indices", indices(1)}}, n_.types[0])};
  }
  Names scatter() {
    const std::string& how = n_.arg<std::string>(4);
    must(how.empty() || how == "add");
    std::vector<int64_t> order = in_front(dims(3), type(0).rank()), back(order.size());
    for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
    Named x = permuted(operand(value(0)), order);
    x.name =
        aten("index_put.default",
             {{"self", of(x.name)}, {"indices", indices(1)}, {"values", of(2)}, {"accumulate", a_bool(!how.empty())}},
             x.type);
    return {permuted(x, back).name};
  }

  Names reduce() {
    const std::string& how = n_.arg<std::string>(2);
    std::vector<int64_t> over = dims(1);
    const Type& out = n_.types[0];
    if (over.empty()) return {name_of_(value(0))};
    if (how == "add")
      return {
          aten("sum.dim_IntList",
               {{"self", of(0)}, {"dim", ints(over)}, {"keepdim", a_bool(false)}, {"dtype", a_dtype(out.dtype), true}},
               out)};
    static constinit Lazy<std::map<std::string_view, const char*>> kMany([] {
      return std::map<std::string_view, const char*>{
          {"max", "amax.default"}, {"min", "amin.default"}, {"and", "all.dims"}, {"or", "any.dims"}};
    });
    if (auto at = kMany->find(how); at != kMany->end())
      return {aten(at->second, {{"self", of(0)}, {"dim", ints(over)}}, out)};
    must(how == "mul");
    Named x = operand(value(0));
    std::sort(over.rbegin(), over.rend());
    for (int64_t d : over) {
      x.type.shape.erase(x.type.shape.begin() + d);
      x.name = aten(
          "prod.dim_int",
          {{"self", of(x.name)}, {"dim", an_int(d)}, {"keepdim", a_bool(false)}, {"dtype", a_dtype(out.dtype), true}},
          x.type);
    }
    return {x.name};
  }
  Names arg_reduce() {
    bool greatest = n_.arg<std::string>(2) == "max";
    return {aten(greatest ? "argmax.default" : "argmin.default",
                 {{"self", of(0)}, {"dim", an_int(n_.arg<Expr>(1).constant())}}, n_.types[0])};
  }
  Names scan() {
    const std::string& how = n_.arg<std::string>(2);
    must(n_.arg(3).is_none());
    Arguments arguments = {{"self", of(0)}, {"dim", an_int(n_.arg<Expr>(1).constant())}};
    if (how == "max" || how == "min")
      return {to_.add(str("cum", how, ".default"), arguments, {n_.types[0], {DType::Int64, n_.types[0].shape, false}})
                  .front()};
    must(how == "add" || how == "mul");
    arguments.push_back({"dtype", a_dtype(n_.types[0].dtype), true});
    return {aten(how == "add" ? "cumsum.default" : "cumprod.default", arguments, n_.types[0])};
  }
  Names sort() {
    int64_t d = n_.arg<Expr>(1).constant();
    Type whole = type(0), places = like({DType::Int64, {}, false}, whole.shape);
    Names both = to_.add("sort.stable",
                         {{"self", of(0)},
                          {"stable", a_bool(true), true},
                          {"dim", an_int(d), true},
                          {"descending", a_bool(n_.arg<bool>(2)), true}},
                         {whole, places});
    Expr first = n_.arg<Expr>(3), count = n_.arg<Expr>(4);
    return {sliced({both[0], whole}, d, first, count, 1).name, sliced({both[1], places}, d, first, count, 1).name};
  }

  // [batch, rows, columns] for a product.
  Named matrices(Value v, const std::vector<int64_t>& batch, const std::vector<int64_t>& contracted, bool rows_first,
                 Shape& free) {
    Named x = operand(v);
    std::vector<int64_t> rest;
    for (int64_t d = 0; d < x.type.rank(); ++d)
      if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
          std::find(contracted.begin(), contracted.end(), d) == contracted.end()) {
        rest.push_back(d);
        free.push_back(x.type.shape[d]);
      }
    std::vector<int64_t> order = batch, second = rows_first ? contracted : rest;
    const std::vector<int64_t>& first = rows_first ? rest : contracted;
    order.insert(order.end(), first.begin(), first.end());
    size_t columns = order.size();
    order.insert(order.end(), second.begin(), second.end());
    x = permuted(x, order);
    const Shape& s = x.type.shape;
    return reshaped(x, {product(s, 0, batch.size()), product(s, batch.size(), columns), product(s, columns, s.size())});
  }
  Names dot_general() {
    Shape rows, columns;
    Named a = matrices(value(0), dims(4), dims(2), true, rows),
          b = matrices(value(1), dims(5), dims(3), false, columns);
    Type t = like(n_.types[0], {a.type.shape[0], a.type.shape[1], b.type.shape[2]});
    Named out{aten("bmm.default", {{"self", of(a.name)}, {"mat2", of(b.name)}}, t), t};
    return {reshaped(out, n_.types[0].shape).name};
  }
  Names convolution() {
    Named x = operand(value(0));
    std::vector<Expr> low = exprs(3), high = exprs(4), spread_by = {0, 0}, none(low.size(), 0);
    for (Expr d : exprs(5)) spread_by.push_back(d - 1);
    Json zero = an_int(0);
    if (is_floating(x.type.dtype)) zero = {{"as_float", 0.0}};
    x = spread(x, spread_by, zero);
    if (low != high || std::any_of(low.begin(), low.end(), [](Expr e) { return e->min < 0; })) {
      std::vector<Expr> before = {0, 0}, after = {0, 0};
      before.insert(before.end(), low.begin(), low.end());
      after.insert(after.end(), high.begin(), high.end());
      x = padded(x, before, after, zero);
      low = none;
    }
    return {aten("convolution.default",
                 {{"input", of(x.name)},
                  {"weight", of(1)},
                  {"bias", {{"as_none", true}}},
                  {"stride", to_.integers(exprs(2))},
                  {"padding", to_.integers(low)},
                  {"dilation", to_.integers(exprs(6))},
                  {"transposed", a_bool(false)},
                  {"output_padding", to_.integers(none)},
                  {"groups", to_.integer(n_.arg<Expr>(7))}},
                 n_.types[0])};
  }
};

}  // namespace

Names write_primitive(ArchiveNodes& to, const ir::Node& node, const std::function<std::string(Value)>& name_of) {
  Names whole = write_factorisation(to, node, name_of);
  return whole.empty() ? Writer(to, node, name_of).write() : whole;
}

}  // namespace brasa::exporting
