#include "import/frame.h"

#include <utility>

#include "ops/table.h"
#include "support/error.h"
#include "tensor/target.h"

namespace brasa::import {

std::vector<Value> Frame::run(std::vector<Value> inputs) {
  BRASA_CHECK(inputs.size() == graph_.inputs.size(), program_.source, ": a graph of ", graph_.inputs.size(),
              " inputs got ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (graph_.inputs[i] >= 0) values_[static_cast<size_t>(graph_.inputs[i])] = std::move(inputs[i]);
  run_nodes(0, graph_.nodes.size());
  std::vector<Value> out;
  for (const Argument& a : graph_.outputs) out.push_back(value(a));
  return out;
}

namespace {

// While a node runs, a recording can say which it is.
class Caller {
 public:
  Caller(KnownSizes* sizes, const Node& node) : sizes_(sizes) {
    if (sizes_) before_ = std::exchange(sizes_->caller, [&node] { return describe(node); });
  }
  ~Caller() {
    if (sizes_) sizes_->caller = std::move(before_);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

 private:
  KnownSizes* sizes_;
  std::function<std::string()> before_;
};

}  // namespace

void Frame::run_nodes(size_t first, size_t end, const std::function<bool(const Node&)>& done) {
  for (next_ = first; next_ < end;) {
    const Node& node = graph_.nodes[next_++];
    Caller caller(known_sizes_, node);
    try {
      if (!done || !done(node)) node.run(*this, node);
    } catch (const Error& e) {
      std::string at = program_.source + ": node '";
      if (std::string_view(e.what()).starts_with(at)) throw;  // Of a graph within this one.
      fail(str(program_.source, ": ", describe(node), ": ", e.what()));
    }
    for (int slot : node.last_uses) values_[static_cast<size_t>(slot)] = std::monostate();
  }
}

const Argument& Frame::argument(const Node& node, size_t i) const {
  BRASA_CHECK(i < node.arguments.size(), "it has only ", node.arguments.size(), " arguments");
  return node.arguments[i];
}
const Argument* Frame::named(const Node& node, std::string_view name) const {
  for (const Argument& a : node.arguments)
    if (a.name == name) return &a;
  return nullptr;
}

Number Frame::literal(const Scalar& s) const {
  return known_sizes_ && s.isIntegral(false) ? Number(s.toLong(), ir::Expr(s.toLong()), known_sizes_) : Number(s);
}

Value Frame::value(const Argument& a) const {
  if (std::holds_alternative<std::monostate>(a.value)) return {};
  if (const auto* r = std::get_if<Ref>(&a.value)) return at(r->slot);
  if (const auto* s = std::get_if<Scalar>(&a.value)) return literal(*s);
  if (std::holds_alternative<std::string>(a.value)) return {};  // An output that is a text.
  fail("an argument that is neither a tensor nor a number");
}

std::vector<Value> Frame::values(const Argument& a) const {
  std::vector<Value> out;
  if (const auto* refs = std::get_if<Refs>(&a.value)) {
    for (int slot : refs->slots) out.push_back(slot < 0 ? Value() : at(slot));
  } else if (const auto* numbers = std::get_if<NumberList>(&a.value)) {
    for (const NumberList::Item& item : numbers->items) {
      if (item.slot >= 0)
        out.push_back(at(item.slot));
      else if (numbers->type == NumberList::Type::Float)
        out.emplace_back(Scalar(item.real));
      else
        out.emplace_back(numbers->type == NumberList::Type::Int ? literal(item.integer) : Scalar(item.integer != 0));
    }
  } else {
    out.push_back(value(a));
  }
  return out;
}

Tensor Frame::tensor(const Argument& a) const {
  Value v = value(a);
  if (auto* t = std::get_if<Tensor>(&v)) return *t;
  fail(str("argument '", a.name, "' is no tensor"));
}
Scalar Frame::number(const Argument& a) const { return number_of(value(a)); }
Number Frame::exact_number(const Argument& a) const {
  Value v = value(a);
  if (auto* n = std::get_if<Number>(&v)) return *n;
  return number_of(v);
}
const Graph& Frame::graph(const Argument& a) const {
  const auto* g = std::get_if<std::shared_ptr<const Graph>>(&a.value);
  BRASA_CHECK(g, "argument '", a.name, "' is no graph");
  return **g;
}

void Frame::set_all(const Node& node, std::vector<Value> v) {
  BRASA_CHECK(v.size() >= node.outputs.size(), "it gave ", v.size(), " results, expected ", node.outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) set(node, i, std::move(v[i]));
}

Scalar number_of(const Value& v) {
  if (const auto* n = std::get_if<Number>(&v)) {
    BRASA_CHECK(!n->of_values, "a number that depends on values is not known before the program runs");
    return n->value;
  }
  const auto* t = std::get_if<Tensor>(&v);
  BRASA_CHECK(t && t->defined() && t->numel() == 1, "expected a number");
  return t->item();
}
NamedInts::NamedInts(const Frame& frame, const Argument& a) {
  std::vector<int64_t> names;
  bool any = false;
  for (const Value& v : frame.values(a)) {
    const auto* n = std::get_if<Number>(&v);
    CallArg item = n && n->value.isIntegral(false) ? named_argument(*n) : CallArg(number_of(v).toLong());
    items_.push_back(item.integer);
    names.push_back(item.named ? item.size : 0);
    any = any || item.named;
  }
  size_ = items_.size();
  if (any) items_.insert(items_.end(), names.begin(), names.end());
}

CallArg NamedInts::argument() const {
  CallArg out(IntArrayRef(items_.data(), size_));
  out.named = items_.size() > size_;
  return out;
}

bool truth_of(const Value& v) {
  Scalar s = number_of(v);
  return s.isBoolean() ? s.toBool() : s.toComplexDouble() != 0.0;
}

namespace {

// A node's arguments as a call takes them, with what these point to.
class CallArguments {
 public:
  CallArguments(const Frame& frame, const std::string& op, const std::vector<Argument>& arguments)
      : frame_(frame), arguments_(arguments) {
    // What differs with sizes is an argument of one kind or another by what the operator does with it.
    if (frame.known_sizes()) schema_ = &eager::target_of(op).row->schema;
    for (const Argument& a : arguments) {
      // The tensor that is written may have another name in the operator that is not in place.
      bool first = a.name.empty() || (&a == arguments.data() && a.name == "self");
      if (int at = !schema_ ? -1 : first ? static_cast<int>(first_.size()) : schema_->index_of(a.name); at >= 0)
        parameter_ = static_cast<size_t>(at) < schema_->params.size() ? &schema_->params[at] : nullptr;
      else
        parameter_ = nullptr;
      if (first)
        first_.push_back(of(a));
      else
        named_.push_back({a.name, of(a)});
    }
  }
  const std::vector<CallArg>& first() const { return first_; }
  const std::vector<NamedArg>& named() const { return named_; }

 private:
  CallArg of(const Value& v) {
    if (const auto* t = std::get_if<Tensor>(&v)) return CallArg(tensors_.emplace_front(*t));
    if (const auto* n = std::get_if<Number>(&v)) return of(*n);
    return std::nullopt;
  }
  CallArg of(const Number& n) {
    if (n.varies() && parameter_ && !parameter_->list) {
      using ir::ParamType;
      bool tensor = parameter_->type == ParamType::Tensor;
      bool real =
          parameter_->type == ParamType::Float || (parameter_->type == ParamType::Scalar && n.value.isFloatingPoint());
      if (tensor) return CallArg(tensors_.emplace_front(n.element(dtype_among_tensors(n.value))));
      if (real && parameter_->use == ir::NumberUse::Input)
        return CallArg(tensors_.emplace_front(n.element(DType::Float64)));
    }
    if (n.value.isIntegral(false) && n.by) return named_argument(n);
    return of(number_of(n));
  }
  // What a number counts for beside the tensors of the call is less than what a tensor of its type would.
  DType dtype_among_tensors(const Scalar& value) const {
    bool wide = false, sized = false;
    std::optional<DType> integral;
    for (const Argument& a : arguments_) {
      const auto* r = std::get_if<Ref>(&a.value);
      const auto* t = r && r->slot >= 0 ? std::get_if<Tensor>(&frame_.at(r->slot)) : nullptr;
      if (!t) continue;
      DType d = t->scalar_type();
      wide = wide || d == DType::Float64 || d == DType::Complex128;
      sized = sized || t->dim() > 0;
      if (is_integral(d, false)) integral = d;
    }
    if (value.isFloatingPoint()) return wide ? DType::Float64 : DType::Float32;
    if (value.isBoolean()) return DType::Bool;
    return sized ? DType::Int64 : integral.value_or(DType::Int64);
  }
  CallArg of(const Scalar& s) {
    if (s.isBoolean()) return s.toBool();
    if (s.isFloatingPoint()) return s.toDouble();
    if (s.type() == DType::Int64) return s.toLong();
    return CallArg(scalars_.emplace_front(s));
  }
  CallArg of(const Refs& refs) {
    if (refs.optional) {
      auto& list = optional_lists_.emplace_front();
      for (int slot : refs.slots) {
        const auto* t = slot < 0 ? nullptr : std::get_if<Tensor>(&frame_.at(slot));
        list.push_back(t ? std::optional(*t) : std::nullopt);
      }
      return ArrayRef<std::optional<Tensor>>(list);
    }
    // Numbers among tensors: sizes that are values.
    if (!refs.slots.empty() && std::holds_alternative<Number>(frame_.at(refs.slots[0])))
      return ints_.emplace_front(frame_, Argument{"", refs}).argument();
    auto& list = lists_.emplace_front();
    for (int slot : refs.slots) {
      const auto* t = slot < 0 ? nullptr : std::get_if<Tensor>(&frame_.at(slot));
      list.push_back(t ? *t : Tensor());
    }
    return TensorList(list);
  }
  CallArg of(const NumberList& numbers) {
    auto get = [&](const NumberList::Item& item, auto literal, auto convert) {
      return item.slot < 0 ? literal : convert(number_of(frame_.at(item.slot)));
    };
    switch (numbers.type) {
      case NumberList::Type::Float: {
        auto& list = doubles_.emplace_front();
        for (const auto& item : numbers.items)
          list.push_back(get(item, item.real, [](const Scalar& s) { return s.toDouble(); }));
        return ArrayRef<double>(list);
      }
      case NumberList::Type::Bool: {
        auto& list = bools_.emplace_front(new bool[numbers.items.size() + 1]);
        size_t i = 0;
        for (const auto& item : numbers.items)
          list[i++] = get(item, item.integer != 0, [](const Scalar& s) { return s.toBool(); });
        return ArrayRef<bool>(list.get(), numbers.items.size());
      }
      case NumberList::Type::Int: break;
    }
    return ints_.emplace_front(frame_, Argument{"", numbers}).argument();
  }
  CallArg of(const Argument& a) {
    return std::visit(
        [&](const auto& v) -> CallArg {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, std::monostate>)
            return std::nullopt;
          else if constexpr (std::is_same_v<T, Ref>)
            return of(frame_.at(v.slot));
          else if constexpr (std::is_same_v<T, Scalar>)
            return of(frame_.value(a));
          else if constexpr (std::is_same_v<T, Device>)
            return frame_.program().device.value_or(v);
          else if constexpr (std::is_same_v<T, std::string>)
            return std::string_view(v);
          else if constexpr (std::is_same_v<T, DType> || std::is_same_v<T, Layout> || std::is_same_v<T, MemoryFormat>)
            return v;
          else if constexpr (std::is_same_v<T, Refs> || std::is_same_v<T, NumberList>)
            return of(v);
          else
            fail(str("argument '", a.name, "' is of a kind that no operator takes"));
        },
        a.value);
  }

  const Frame& frame_;
  const std::vector<Argument>& arguments_;
  const ir::Schema* schema_ = nullptr;
  const ir::Param* parameter_ = nullptr;
  std::vector<CallArg> first_;
  std::vector<NamedArg> named_;
  std::forward_list<Tensor> tensors_;
  std::forward_list<Scalar> scalars_;
  std::forward_list<std::vector<Tensor>> lists_;
  std::forward_list<std::vector<std::optional<Tensor>>> optional_lists_;
  std::forward_list<NamedInts> ints_;
  std::forward_list<std::vector<double>> doubles_;
  std::forward_list<std::unique_ptr<bool[]>> bools_;
};

}  // namespace

void run_operator(Frame& frame, const Node& node) {
  CallArguments arguments(frame, node.op, node.arguments);
  std::vector<Tensor> results = call(node.op, arguments.first(), arguments.named());
  std::vector<Value> values;
  for (Tensor& t : results) values.push_back(t.defined() ? Value(std::move(t)) : Value());
  frame.set_all(node, std::move(values));
}

namespace {

// Of a list its item, of what is no list itself. The names of lists are no names of items, so that these go by their places.
Argument item_of(const Argument& a, size_t i) {
  Argument out{a.name == "alpha" || a.name == "value" ? a.name : "", a.value};
  if (const auto* refs = std::get_if<Refs>(&a.value)) {
    BRASA_CHECK(i < refs->slots.size(), "the list '", a.name, "' has only ", refs->slots.size(), " items");
    out.value = Ref{refs->slots[i]};
  } else if (const auto* numbers = std::get_if<NumberList>(&a.value)) {
    BRASA_CHECK(i < numbers->items.size(), "the list '", a.name, "' has only ", numbers->items.size(), " items");
    const NumberList::Item& n = numbers->items[i];
    using Type = NumberList::Type;
    if (n.slot >= 0)
      out.value = Ref{n.slot};
    else
      out.value = numbers->type == Type::Float ? Scalar(n.real)
                  : numbers->type == Type::Int ? Scalar(n.integer)
                                               : Scalar(n.integer != 0);
  }
  return out;
}

constexpr std::string_view kForEach = "aten::_foreach_";

std::optional<std::string> schema_if_known(const std::string& op) {
  try {
    return schema_of(op);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// "aten::_foreach_mul.ScalarList" as "aten::mul.Scalar", "aten::_foreach_maximum.List" as "aten::maximum"; empty for other operators.
std::string of_each(const std::string& op) {
  if (!op.starts_with(kForEach)) return "";
  size_t dot = std::min(op.rfind('.'), op.size());
  std::string name = "aten::" + op.substr(kForEach.size(), dot - kForEach.size()), overload = op.substr(dot);
  std::vector<std::string> overloads = {overload, ""};
  if (overload == ".List") overloads = {".Tensor", ".Tensor_Tensor", ""};
  if (overload == ".Scalar" || overload == ".ScalarList") overloads = {".Tensor_Scalar", ".Scalar", ""};
  if (overload == ".ScalarAndTensor") overloads = {".Scalar"};
  for (const std::string& o : overloads)
    if (schema_if_known(name + o)) return name + o;
  return "";
}

}  // namespace

void run_for_each(Frame& frame, const Node& node) {
  const Refs* lists = nullptr;
  for (const Argument& a : node.arguments)
    if (!lists) lists = std::get_if<Refs>(&a.value);
  BRASA_CHECK(lists, "none of its arguments is a list of tensors");
  bool keyword = schema_of(node.op).find("*, Scalar value") != std::string::npos;
  std::vector<Value> values;
  for (size_t i = 0; i < lists->slots.size(); ++i) {
    std::vector<Argument> item;
    for (const Argument& a : node.arguments) {
      item.push_back(item_of(a, i));
      if (keyword && a.name == "scalars") item.back().name = "value";
    }
    CallArguments arguments(frame, node.op, item);
    for (Tensor& t : call(node.op, arguments.first(), arguments.named())) values.emplace_back(std::move(t));
  }
  frame.set_all(node, std::move(values));
}

Handler handler_of(const std::string& target, std::string& op) {
  if (Handler h = number_handler(target)) return h;
  if (Handler h = graph_handler(target)) return h;
  if (Handler h = many_calls_handler(target)) return h;
  if (Handler h = copy_handler(target)) return h;
  if (Handler h = library_handler(target)) return h;
  constexpr std::string_view kPrefix = "torch.ops.";
  if (!target.starts_with(kPrefix)) return nullptr;
  op = target.substr(kPrefix.size());
  size_t dot = op.find('.');
  if (dot == op.npos) return nullptr;
  op.replace(dot, 1, "::");
  std::string each = of_each(op);
  if (!each.empty()) op = each;
  if (!schema_if_known(op)) return nullptr;
  return each.empty() ? run_operator : run_for_each;
}

}  // namespace brasa::import
