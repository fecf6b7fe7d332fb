#include <brasa/call.h>

#include "support/error.h"
#include "tensor/args.h"
#include "tensor/dispatch.h"
#include "tensor/known_sizes.h"
#include "tensor/masks.h"
#include "tensor/target.h"
#include "tensor/views.h"
#include "transforms/derived.h"

namespace brasa {
namespace {

using eager::Target;

std::optional<Target> find_target(std::string_view name) {
  if (const ops::Row* row = transforms::find_row(name)) return Target{row, false};
  size_t dot = name.find('.');
  std::string_view base = name.substr(0, dot);
  if (base.ends_with('_')) {
    std::string functional(base.substr(0, base.size() - 1));
    if (dot != name.npos) functional += name.substr(dot);
    if (const ops::Row* row = transforms::find_row(functional)) return Target{row, true};
  }
  return std::nullopt;
}
using eager::target_of;

bool has_mask(const CallArg& indices) {
  bool any = false;
  eager::each_tensor(indices, [&](const Tensor& t) { any = any || (t.defined() && eager::is_mask(t)); });
  return any;
}

// The positions where masks hold, in place of the masks: how many there are no row can know.
eager::OptionalTensors without_masks(const Target& target, ArrayRef<CallArg> args) {
  eager::OptionalTensors indices;
  for (uint32_t i = 0; i < args[1].size; ++i)
    indices.push_back(args[1].kind == CallArg::Kind::Tensors ? std::optional(args[1].tensor[i])
                                                             : args[1].optional_tensor[i]);
  bool writes = target.row->schema.params.size() > 2;
  return writes ? eager::written_positions(*args[0].tensor, indices) : eager::read_positions(*args[0].tensor, indices);
}

// A tensor of one element stands for its number where one is asked for.
bool is_number_in_tensor(const CallArg& a, const ir::Param& p) {
  using ir::ParamType;
  // A recording that knows what sizes are has what is computed from them as a value of its graph.
  if (p.type == ParamType::Float && p.use == ir::NumberUse::Input && KnownSizes::current()) return false;
  return (a.kind == CallArg::Kind::Tensor || a.kind == CallArg::Kind::Tensors) &&
         (p.type == ParamType::Int || p.type == ParamType::Float || p.type == ParamType::Bool);
}
CallArg number_in_tensor(const CallArg& a, const ir::Param& p, const ops::Row& row) {
  bool one = !p.list && a.kind == CallArg::Kind::Tensor && a.tensor->defined() && a.tensor->numel() == 1;
  BRASA_CHECK(one, row.name(), ": argument '", p.name, "' is no tensor");
  Scalar s = a.tensor->item();
  if (p.type == ir::ParamType::Float) return s.toDouble();
  if (p.type == ir::ParamType::Bool) return s.toBool();
  BRASA_CHECK(!s.isFloatingPoint() && !s.isComplex(), row.name(), ": argument '", p.name,
              "' should be an integer, got a tensor of ", name(a.tensor->scalar_type()));
  return s.toLong();
}

// `outs`, if any, are what the results are written into.
std::vector<Tensor> run(const Target& target, ArrayRef<CallArg> args, TensorList outs = {}) {
  const auto& params = target.row->schema.params;
  for (size_t i = 0; i < std::min(args.size(), params.size()); ++i) {
    if (!is_number_in_tensor(args[i], params[i])) continue;
    std::vector<CallArg> numbers(args.begin(), args.end());
    numbers[i] = number_in_tensor(args[i], params[i], *target.row);
    return run(target, numbers, outs);
  }
  // PyTorch wants the lengths of a packed sequence on the host, whatever device its rows are on.
  if (int at = target.row->schema.index_of("batch_sizes"); at > 0 && static_cast<size_t>(at) < args.size()) {
    const CallArg &rows = args[0], &lengths = args[static_cast<size_t>(at)];
    bool given = rows.kind == CallArg::Kind::Tensor && lengths.kind == CallArg::Kind::Tensor;
    if (given && lengths.tensor->device() != rows.tensor->device()) {
      Tensor moved = lengths.tensor->to(rows.tensor->device());
      std::vector<CallArg> there(args.begin(), args.end());
      there[static_cast<size_t>(at)] = moved;
      return run(target, there, outs);
    }
  }
  eager::Operator& op = eager::op(*target.row);
  eager::OptionalTensors indices;
  std::vector<CallArg> without;
  if (op.row().masks && args.size() > 1 && args[0].kind == CallArg::Kind::Tensor && args[0].tensor->defined() &&
      has_mask(args[1])) {
    try {
      indices = without_masks(target, args);
    } catch (const Error& e) {
      eager::rethrow_named(op, args, e);
    }
    without.assign(args.begin(), args.end());
    without[1] = CallArg(ArrayRef<std::optional<Tensor>>(indices));
    args = without;
  }
  if (!outs.empty()) {
    const auto& returns = target.row->schema.returns;
    BRASA_CHECK(returns.size() == outs.size() && !returns[0].list, target.row->name(), ": 'out' gives ", outs.size(),
                " tensors for ", returns.size(), " results");
    std::vector<Tensor> written(outs.begin(), outs.end());
    std::vector<Tensor*> addresses;
    for (Tensor& t : written) addresses.push_back(&t);
    eager::call_outs(op, args, addresses);
    return written;
  }
  if (!target.in_place) return eager::call_list(op, args);
  BRASA_CHECK(!args.empty() && args[0].kind == CallArg::Kind::Tensor, target.row->name(),
              " in place: the first argument must be the tensor that is written");
  if (op.row().view) return {eager::look_like(*args[0].tensor, eager::call_one(op, args))};
  return {eager::call_in_place(op, args, *args[0].tensor)};
}

// A caller who knows values and no types, such as a binding, has one empty list for all of them.
CallArg fitted(const CallArg& a, const ir::Param& p) {
  if (a.kind != CallArg::Kind::Ints || a.size != 0) return a;
  if (p.type == ir::ParamType::Tensor) return TensorList();
  if (p.type == ir::ParamType::Bool) return ArrayRef<bool>();
  if (p.type == ir::ParamType::Scalar) return ArrayRef<Scalar>();
  return a;
}

}  // namespace

Target eager::target_of(std::string_view name) {
  if (auto target = find_target(name)) return *target;
  fail(str("there is no operator '", name, "'"));
}

std::vector<Tensor> call(std::string_view name, ArrayRef<CallArg> args) { return run(target_of(name), args); }

std::vector<Tensor> call(std::string_view name, ArrayRef<CallArg> args, ArrayRef<NamedArg> named) {
  Target target = target_of(name);
  const ir::Schema& schema = target.row->schema;
  const auto& params = schema.params;
  BRASA_CHECK(args.size() <= params.size(), name, ": takes ", params.size(), " arguments, got ", args.size());
  std::vector<CallArg> all;
  for (size_t i = 0; i < args.size(); ++i) all.push_back(fitted(args[i], params[i]));

  std::vector<const NamedArg*> by_name(params.size());
  TensorList outs;
  for (const NamedArg& a : named) {
    int at = schema.index_of(a.name);
    if (at < 0 && a.name == "out" && !target.in_place) {
      bool list = a.value.kind == CallArg::Kind::Tensors;
      if (list || a.value.kind == CallArg::Kind::Tensor) {
        outs = {a.value.tensor, list ? a.value.size : 1};
        continue;
      }
    }
    BRASA_CHECK(at >= 0, name, ": there is no parameter '", a.name, "' in ", schema_of(name));
    BRASA_CHECK(static_cast<size_t>(at) >= args.size() && !by_name[at], name, ": argument '", a.name,
                "' is given twice");
    by_name[at] = &a;
  }
  size_t used = params.size();
  while (used > args.size() && !by_name[used - 1]) --used;
  eager::Literals defaults;
  for (size_t i = args.size(); i < used; ++i) {
    const ir::Param& p = params[i];
    all.push_back(by_name[i] ? fitted(by_name[i]->value, p) : defaults.default_of(p, *target.row));
  }
  return run(target, all, outs);
}

bool has_operator(std::string_view name) { return find_target(name).has_value(); }

std::string schema_of(std::string_view name) {
  std::string out;
  append_to(out, target_of(name).row->schema);
  return out;
}

}  // namespace brasa
