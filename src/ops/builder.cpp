#include "ops/builder.h"

#include "ops/primitives.h"

#include "support/error.h"

namespace brasa::ops {
namespace {
thread_local Builder* current_builder = nullptr;

// Sizes, strides and bytes are computed in 64 bits: what is larger than this can overflow, and fits into no memory.
void check_size(const Row& row, const Type& type) {
  constexpr int64_t kMost = int64_t{1} << 56;
  int64_t known = 1;
  bool fits = true;
  for (Expr e : type.shape)
    BRASA_CHECK(!e.is_constant() || e.constant() >= 0, row.schema.base, ": would give a negative size: ", type.shape);
  for (Expr e : type.shape) {
    if (e.is(0)) return;
    if (e.is_constant()) fits = fits && !__builtin_mul_overflow(known, e.constant(), &known) && known <= kMost;
  }
  BRASA_CHECK(fits, row.schema.base, ": a tensor of shape ", type.shape, " is too large");
}

}  // namespace

Builder::Builder(ir::Graph& graph, ir::Facts& facts, std::function<bool(const Row&)> keep)
    : graph_(graph), facts_(facts), keep_(std::move(keep)), outer_(current_builder) {
  current_builder = this;
}
Builder::~Builder() { current_builder = outer_; }

Builder& Builder::current() {
  BRASA_ASSERT(current_builder, "no Builder on this thread");
  return *current_builder;
}

Builder* Builder::current_or_null() { return current_builder; }

namespace {

bool is_tensor(const ir::Param& p) { return p.type == ir::ParamType::Tensor || p.type == ir::ParamType::Generator; }

bool has_literal_numbers(const Args& args, const std::vector<ir::Param>& params) {
  for (size_t i = 0; i < args.size(); ++i) {
    auto* e = args[i].get_if<Expr>();
    if (!is_tensor(params[i]) && (args[i].is<Value>() || (e && !e->is_constant()))) return false;
  }
  return true;
}

}  // namespace

void check_numbers(const Row& row, Args args) {
  const auto& params = row.schema.params;
  for (size_t i = 0; i < args.size(); ++i)
    if (is_tensor(params[i])) args[i] = Arg();
  row.precondition(args);
}

void complete_args(const Row& row, Args& args) {
  const auto& params = row.schema.params;
  BRASA_CHECK(args.size() <= params.size(), row.name(), ": takes ", params.size(), " arguments, got ", args.size());
  for (size_t i = args.size(); i < params.size(); ++i) {
    BRASA_CHECK(params[i].default_value || params[i].optional, row.name(), ": no value for '", params[i].name, "'");
    args.push_back(params[i].default_value ? *params[i].default_value : Arg());
  }
  if (row.precondition && has_literal_numbers(args, params)) check_numbers(row, args);
}

// A dtype that is only stored reaches what moves elements, and what converts them.
void check_computes(const Row& row, const Args& args) {
  if (row.any_dtype || is_leaf(row.kind) || is_view(row.kind)) return;
  for (const Arg& a : args)
    a.for_each_value([&](Value v) {
      DType t = ir::type_of(v).dtype;
      if (!computes(t))
        throw NotImplementedError(str("\"", row.schema.base, "\" not implemented for '", info_of(t).scalar_type,
                                      "': convert the tensor to a dtype that operators compute with"));
    });
}

std::vector<Type> result_types(const Row& row, const Args& args, ir::Facts& facts) {
  if (row.is_primitive()) {
    check_computes(row, args);
    return row.type(args);
  }
  ir::Graph side(ir::Level::Primitives);
  ir::ValueMap map;
  for (const Arg& a : args)
    a.for_each_value([&](Value v) {
      if (!map.find(v)) map.set(v, side.add_input(ir::type_of(v)));
    });
  Args mapped;
  for (const Arg& a : args) mapped.push_back(map(a));
  Builder builder(side, facts);
  std::vector<Type> types;
  for (Value v : row.compose(mapped)) types.push_back(v ? ir::type_of(v) : Type{});
  return types;
}

std::vector<Value> Builder::record(const Row& row, Args args) {
  complete_args(row, args);
  std::vector<Type> types = result_types(row, args, facts_);
  for (const Type& t : types) check_size(row, t);
  Node* n = graph_.add(&row, std::move(args), std::move(types));
  std::vector<Value> out;
  for (uint32_t i = 0; i < n->types.size(); ++i) out.push_back(n->out(i));
  return out;
}

std::vector<Value> Builder::call(const Row& row, Args args) {
  if (row.is_primitive() || keeps(row)) return record(row, std::move(args));
  complete_args(row, args);
  return row.compose(args);
}

Arg int_arg(const std::vector<int64_t>& items) {
  std::vector<Expr> out;
  for (int64_t i : items) out.emplace_back(i);
  return Arg(std::move(out));
}

std::vector<Value> call_all(std::string_view name, Args args) {
  return Builder::current().call(at(name), std::move(args));
}

Value call(std::string_view name, Args args) {
  std::vector<Value> out = call_all(name, std::move(args));
  BRASA_ASSERT(out.size() == 1, name, " has ", out.size(), " results");
  return out[0];
}

}  // namespace brasa::ops
