#include "ops/table.h"

#include <algorithm>

#include "ops/algebra.h"
#include "ops/families.h"
#include "support/error.h"
#include "support/lazy.h"

namespace brasa::ops {

bool Row::legal_at(ir::Level level) const {
  switch (level) {
    case ir::Level::Operators: return true;
    case ir::Level::Primitives: return is_primitive();
    case ir::Level::Loops: return kind == Kind::Pointwise || kind == Kind::Full;
  }
  return false;
}

std::optional<std::vector<Type>> Row::infer(const Args& args) const {
  if (!is_primitive()) return std::nullopt;
  return type(args);
}

namespace {

// An `int` or `int[]` of a primitive names dimensions: of the result if its `size` is among the arguments, of operand `a` if the
// name begins with "a_", else of the first operand.
const Shape& dimensions_of(const ir::Schema& schema, const Args& args, const std::string& name) {
  int size = schema.index_of("size"), own = schema.index_of(name.substr(0, name.find('_')));
  if (size >= 0 && schema.params[size].list) return args[size].get<Shape>();
  const Arg& x = args[name.find('_') != name.npos && own >= 0 ? own : 0];
  return ir::type_of(x.is<Value>() ? x.get<Value>() : x.get<std::vector<Value>>().front()).shape;
}

// What the type rules of all primitives rely on, also where somebody else wrote the arguments: operands are there, lists of them
// are not empty, and the dimensions that are named exist.
void check_operands(const ir::Schema& schema, const Args& args) {
  for (const Arg& a : args) {
    auto* one = a.get_if<Value>();
    auto* list = a.get_if<std::vector<Value>>();
    bool absent =
        (one && !*one) || (list && (list->empty() || std::find(list->begin(), list->end(), Value{}) != list->end()));
    BRASA_CHECK(!absent, schema.name, ": an operand is missing");
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const ir::Param& p = schema.params[i];
    if (p.type != ir::ParamType::Int || p.symbolic || args[i].is_none()) continue;
    auto rank = static_cast<int64_t>(dimensions_of(schema, args, p.name).size());
    auto check = [&](Expr d) {
      BRASA_CHECK(d.is_constant() && d.constant() >= 0 && d.constant() < rank, schema.base,
                  ": expected a tensor with more dimensions: there is no dimension ", d, " of ", rank);
    };
    if (p.list)
      for (Expr d : args[i].get<std::vector<Expr>>()) check(d);
    else
      check(args[i].get<Expr>());
  }
}

}  // namespace

RowBuilder& RowBuilder::doc(std::string text) {
  row_.doc = std::move(text);
  return *this;
}
RowBuilder& RowBuilder::one_dtype(std::initializer_list<std::string_view> parameters) {
  std::vector<size_t> at;
  for (std::string_view p : parameters) {
    at.push_back(static_cast<size_t>(row_.schema.index_of(p)));
    BRASA_ASSERT(at.back() < row_.schema.params.size(), row_.name(), " has no parameter ", p);
  }
  return set_compose([inner = std::move(row_.compose), at, &params = row_.schema.params](const Args& args) {
    std::optional<size_t> first;
    for (size_t i : at) {
      auto* v = args[i].get_if<Value>();
      if (!v || !*v) continue;
      if (!first) first = i;
      DType given = dtype_of(*v), wanted = dtype_of(args[*first].get<Value>());
      BRASA_CHECK(given == wanted, "expected '", params[i].name, "' to be of dtype ", name(wanted), ", as '",
                  params[*first].name, "' is, but it is ", name(given));
    }
    return inner(args);
  });
}
RowBuilder& RowBuilder::samples(std::vector<Sample> s) {
  row_.samples = std::move(s);
  return *this;
}
RowBuilder& RowBuilder::type(TypeRule rule) {
  row_.type = [rule = std::move(rule), &schema = row_.schema](const Args& args) {
    check_operands(schema, args);
    return rule(args);
  };
  return *this;
}
RowBuilder& RowBuilder::eval(Eval rule) {
  row_.eval = std::move(rule);
  return *this;
}
RowBuilder& RowBuilder::kind(Kind kind) {
  row_.kind = kind;
  return *this;
}
RowBuilder& RowBuilder::pointwise(int work) {
  row_.kind = Kind::Pointwise;
  row_.scalar = scalar_op_of(row_.schema.base);
  BRASA_ASSERT(row_.scalar != ScalarOp::None, row_.name(), " is missing in ops/scalar_op.h");
  row_.work = work;
  return *this;
}
RowBuilder& RowBuilder::symbolic(Symbolic f) {
  row_.symbolic = f;
  return *this;
}
RowBuilder& RowBuilder::dense() {
  row_.dense = true;
  return *this;
}
RowBuilder& RowBuilder::commutative() {
  row_.commutative = true;
  return *this;
}
RowBuilder& RowBuilder::costly() {
  row_.costly = true;
  return *this;
}
RowBuilder& RowBuilder::any_dtype() {
  row_.any_dtype = true;
  return *this;
}
RowBuilder& RowBuilder::jvp(Jvp rule) {
  row_.jvp = std::move(rule);
  return *this;
}
RowBuilder& RowBuilder::batched(Batch rule) {
  row_.batch = std::move(rule);
  return *this;
}
RowBuilder& RowBuilder::index_rule(IndexRule rule) {
  row_.index_rule = std::move(rule);
  return *this;
}
RowBuilder& RowBuilder::partial(Partial rule) {
  row_.partial = std::move(rule);
  return *this;
}
RowBuilder& RowBuilder::transposed(Transpose rule, Linear linear) {
  row_.transposed = std::move(rule);
  row_.linear = linear;
  return *this;
}
RowBuilder& RowBuilder::vjp(Vjp rule) {
  row_.vjp = std::move(rule);
  return *this;
}
RowBuilder& RowBuilder::view_rule(ViewRule rule) {
  row_.view_rule = std::move(rule);
  return *this;
}
RowBuilder& RowBuilder::view() {
  row_.view = true;
  return *this;
}
RowBuilder& RowBuilder::view(std::string otherwise) {
  row_.must_alias = std::move(otherwise);
  return view();
}
RowBuilder& RowBuilder::over_storage() {
  row_.over_storage = true;
  return *this;
}
RowBuilder& RowBuilder::no_gradient() {
  row_.no_gradient = true;
  return *this;
}
RowBuilder& RowBuilder::not_in_pytorch() {
  row_.not_in_pytorch = true;
  return *this;
}
RowBuilder& RowBuilder::masks() {
  row_.masks = true;
  return *this;
}
RowBuilder& RowBuilder::fits(std::string_view parameter) {
  int at = row_.schema.index_of(parameter);
  BRASA_ASSERT(at >= 0, row_.name(), " has no parameter ", parameter);
  row_.fitting |= 1u << at;
  return *this;
}
RowBuilder& RowBuilder::out(Out dtype) {
  row_.out = dtype;
  return *this;
}
RowBuilder& RowBuilder::autocast(Autocast policy) { return autocast(policy, policy); }
RowBuilder& RowBuilder::autocast(Autocast cpu, Autocast gpu) {
  row_.autocast = cpu;
  row_.autocast_on_gpus = gpu;
  return *this;
}
RowBuilder& RowBuilder::sparse(Sparse form) {
  row_.sparse = form;
  return *this;
}
RowBuilder& RowBuilder::memory(Memory what) {
  row_.memory = what;
  return *this;
}
RowBuilder& RowBuilder::backward_node(std::string name) {
  row_.backward_node = std::move(name);
  return *this;
}
RowBuilder& RowBuilder::gradients_together() {
  row_.gradients_together = true;
  return *this;
}
RowBuilder& RowBuilder::keeps_memory_format(uint8_t operands) {
  row_.memory_format = operands;
  return *this;
}
RowBuilder& RowBuilder::packed(std::vector<Sample> calls) {
  row_.packed = std::move(calls);
  return *this;
}

RowBuilder& RowBuilder::random() {
  row_.random = true;
  auto& params = row_.schema.params;
  if (params.empty() || params.back().type != ir::ParamType::Generator) {
    std::erase_if(params, [](const ir::Param& p) { return p.type == ir::ParamType::Generator; });
    ir::Param p;
    p.name = "generator";
    p.type = ir::ParamType::Generator;
    p.optional = p.keyword_only = true;
    p.default_value = Arg();
    params.push_back(std::move(p));
  }
  return *this;
}

void RowBuilder::check_parameters(size_t n) {
  BRASA_ASSERT(n == row_.schema.params.size(), row_.name(), " has ", row_.schema.params.size(),
               " parameters, its composition takes ", n);
}

// The geometry of a convolution's or a pooling's window decides which code is fast: graphs know it.
static bool is_of_window(const ir::Schema& schema, const std::string& parameter) {
  bool has_window =
      schema.index_of("kernel_size") >= 0 || (schema.index_of("stride") >= 0 && schema.index_of("padding") >= 0);
  static constexpr std::string_view kNames[] = {"kernel_size", "stride",         "padding",
                                                "dilation",    "output_padding", "groups"};
  return has_window && std::find(std::begin(kNames), std::end(kNames), parameter) != std::end(kNames);
}

void RowBuilder::set_uses(const std::vector<ir::NumberUse>& uses) {
  for (size_t i = 0; i < uses.size(); ++i) {
    ir::Param& p = row_.schema.params[i];
    p.use = is_of_window(row_.schema, p.name) ? ir::NumberUse::Known : uses[i];
  }
}

ir::Param& RowBuilder::parameter(std::string_view name) {
  int i = row_.schema.index_of(name);
  BRASA_ASSERT(i >= 0, row_.name(), " has no parameter ", name);
  return row_.schema.params[i];
}

RowBuilder& RowBuilder::known(std::initializer_list<std::string_view> parameters) {
  for (std::string_view p : parameters) parameter(p).use = ir::NumberUse::Known;
  return *this;
}

RowBuilder& RowBuilder::itself_unless(std::string_view name) {
  parameter(name);
  row_.itself_unless = row_.schema.index_of(name);
  return *this;
}

RowBuilder& RowBuilder::special(std::string_view name, std::vector<double> numbers) {
  parameter(name).special = std::move(numbers);
  return *this;
}

RowBuilder& RowBuilder::set_compose(Compose f) {
  row_.compose = std::move(f);
  return *this;
}

RowBuilder& RowBuilder::wrap_in_opmath() {
  row_.compose = [inner = std::move(row_.compose)](const Args& args) {
    std::vector<Value> floating;
    bool reduced = false;
    for (const Arg& a : args)
      a.for_each_value([&](Value v) {
        DType t = ir::type_of(v).dtype;
        if (!is_floating(t)) return;
        floating.push_back(v);
        reduced = reduced || is_reduced_floating(t);
      });
    if (!reduced) return inner(args);
    DType result = result_type(floating);
    auto widen = [](Value v) {
      return v && is_reduced_floating(ir::type_of(v).dtype) ? prim::convert(v, DType::Float32) : v;
    };
    Args wide = args;
    for (Arg& a : wide) {
      if (auto* v = a.get_if<Value>()) {
        a = Arg(widen(*v));
      } else if (auto* list = a.get_if<std::vector<Value>>()) {
        std::vector<Value> out;
        for (Value v : *list) out.push_back(widen(v));
        a = Arg(std::move(out));
      }
    }
    std::vector<Value> out = inner(wide);
    if (is_reduced_floating(result))
      for (Value& v : out)
        if (ir::type_of(v).dtype == DType::Float32) v = prim::convert(v, result);
    return out;
  };
  return *this;
}

Row& Table::add(std::string_view schema) {
  rows_.emplace_back();
  Row& row = rows_.back();
  row.schema = ir::parse_schema(schema);
  if (row.schema.index_of("dtype") >= 0) row.out = Out::Decides;
  enter(row);
  return row;
}

void Table::enter(Row& row) {
  bool fresh = by_name_.emplace(row.name(), &row).second;
  BRASA_ASSERT(fresh, row.name(), " stands twice in the table");
  if (!row.schema.name.starts_with("prim::")) row.overload = overloads_[row.schema.base]++;
}

RowBuilder Table::op(std::string_view schema) { return RowBuilder(add(schema)); }
RowBuilder Table::prim(std::string_view schema) {
  Row& row = add(str("prim::", schema));
  for (ir::Param& p : row.schema.params)
    if (p.symbolic) p.use = ir::NumberUse::Size;
  return RowBuilder(row);
}

void Table::alias(std::string_view name, std::string_view of) {
  auto it = by_name_.find(std::string(of));
  BRASA_ASSERT(it != by_name_.end(), "alias of an unknown row ", of);
  rows_.push_back(*it->second);
  Row& row = rows_.back();
  row.schema.name = std::string(name);
  std::string local(name.substr(name.find("::") + 2));
  size_t dot = local.find('.');
  row.schema.base = local.substr(0, dot);
  row.schema.overload = dot == local.npos ? "" : local.substr(dot + 1);
  enter(row);
}

const Row* Table::find(std::string_view name) const {
  auto it = by_name_.find(std::string(name));
  if (it != by_name_.end()) return it->second;
  constexpr std::string_view kDefault = ".default";
  if (name.ends_with(kDefault)) return find(name.substr(0, name.size() - kDefault.size()));
  return nullptr;
}

namespace {

// Rows stay where they are while the table grows; who asks for primitives looks at nothing that grows.
struct Primitives {
  Table* table = new Table;
  std::vector<const Row*> rows;
  std::unordered_map<std::string_view, const Row*> by_name;

  Primitives() {
    add_primitives(*table);
    for (const Row& row : table->rows()) {
      rows.push_back(&row);
      by_name.emplace(row.name(), &row);
    }
  }
  static const Primitives& get() {
    static constinit Lazy<Primitives> instance;
    return *instance;
  }
};

}  // namespace

const Table& table() {
  static constinit Lazy<Table&> instance([]() -> auto& {
    Table* t = Primitives::get().table;
    add_operators(*t);
    return *t;
  });
  return *instance;
}

const std::vector<const Row*>& primitives() { return Primitives::get().rows; }

const Row* find(std::string_view name) {
  const auto& known = Primitives::get().by_name;
  auto it = known.find(name);
  return it == known.end() ? table().find(name) : it->second;
}

const Row& at(std::string_view name) {
  const Row* row = find(name);
  BRASA_CHECK(row, "there is no operator '", name, "'");
  return *row;
}

}  // namespace brasa::ops
