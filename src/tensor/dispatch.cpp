#include "tensor/dispatch.h"

#include <algorithm>
#include <bit>

#include <brasa/autograd.h>

#include "ops/builder.h"
#include "runtime/spans.h"
#include "support/error.h"
#include "tensor/autograd/record.h"
#include "tensor/default_dtype.h"
#include "tensor/execute.h"
#include "tensor/geometry.h"
#include "tensor/in_place.h"
#include "tensor/known_sizes.h"
#include "tensor/overlap.h"
#include "tensor/parse.h"
#include "tensor/recorded_call.h"
#include "tensor/repeat.h"
#include "tensor/result_order.h"
#include "tensor/sparse/sparse.h"
#include "tensor/traced.h"
#include "tensor/views.h"
#include "transforms/derived.h"

namespace brasa::eager {
namespace {

using Kind = CallArg::Kind;

void take_key(Parsed& p) {
  p.key = new_key();
  p.inputs[p.key_input] = InputTensor::of(p.key);
}

void fill_key(void* context, int64_t numel) {
  auto* p = static_cast<Parsed*>(context);
  fill(p->key, p->stream->take(static_cast<uint64_t>(numel)));
}

struct Run {
  // Not an aggregate, which would be cleared as a whole first.
  Run(Operator& o, CallArgs a, const Tensor* i) : op(o), args(a), into(i) {}

  Operator& op;
  CallArgs args;
  const Tensor* into;
  Parsed parsed;
  Sizes order;                        // in which result 0 lies, see order_of_result
  const Computation* form = nullptr;  // of the row: see autograd::form_of
  const Computation* computation = nullptr;
  autograd::InPlace* in_place = nullptr;
  const program::Variant* variant = nullptr;  // see execute
};

void run(Run& r, Results& results) {
  Parsed& p = r.parsed;
  parse(r.op, r.args, p);
  const RowComputation* row = r.op.find(p.words);
  if (!row) row = &r.op.add(p.words, make_computation(r.op, r.args));
  Prepare prepare;
  if (p.key_input >= 0) {
    take_key(p);
    prepare = {fill_key, &p, static_cast<size_t>(p.key_input)};
  }
  r.form = r.into ? row : &autograd::form_of(*row, p.inputs);
  r.computation = r.form;
  if (r.into)
    r.computation = &r.form->in_place();
  else if (!r.order.empty())  // results behind the first, which a derivative reads, are row-major
    r.computation = &r.form->in_order(Orders{.inputs = {}, .results = {r.order, Sizes()}});
  if (r.in_place) r.in_place->before(*r.computation, p.inputs);
  r.variant = execute(*r.computation, p.inputs, r.into, results, prepare, p.place);
  if (!r.order.empty()) name_in_order(results[0], r.order);
}

// A tensor of a call that failed; of indices also which there are.
[[gnu::cold]] std::string described(const Tensor& t, bool with_range) {
  if (!t.defined()) return " undefined";
  std::string out = str(" ", t);
  if (!with_range || !is_integral(t.scalar_type(), false) || t.numel() == 0 || Recorder::current()) return out;
  NoGradGuard guard;
  return str(out, " from ", t.min().item<int64_t>(), " to ", t.max().item<int64_t>());
}

// Of tensors that live elsewhere it is computed there: zeros_like and conversions to a device.
void move_to(runtime::Device& place, Results& results) {
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].defined()) results[i] = moved(results[i], place);
}

}  // namespace

[[gnu::cold]] void rethrow_named(const Operator& op, CallArgs args, const Error& e) {
  bool index = dynamic_cast<const IndexError*>(&e);
  std::string what = e.what(), given;
  const std::string& base = op.row().schema.base;
  if (what.find(base) == what.npos) what = str(op.row().name(), ": ", what);
  each_tensor(args, [&](const Tensor& t) { given += described(t, index); });
  if (!given.empty()) what += str(" (called with", given, ")");
  if (index) throw IndexError(what, e.msg());
  if (dynamic_cast<const NotImplementedError*>(&e)) throw NotImplementedError(what, e.msg());
  if (dynamic_cast<const LinAlgError*>(&e)) throw LinAlgError(what, e.msg());
  if (dynamic_cast<const ValueError*>(&e)) throw ValueError(what, e.msg());
  if (dynamic_cast<const OutOfMemoryError*>(&e)) throw OutOfMemoryError(what);
  if (dynamic_cast<const runtime::DeviceError*>(&e)) throw runtime::DeviceError(what, e.msg());
  throw Error(what, e.msg());
}

namespace {

// The dtype of a call's result, as far as a number in it has to fit: that which is asked for, or the first tensor's.
std::optional<DType> result_dtype(CallArgs args) {
  std::optional<DType> first;
  for (const CallArg& a : args) {
    if (a.kind == Kind::DType) return static_cast<DType>(a.integer);
    if (a.kind == Kind::Tensor && !first && a.tensor->defined()) first = a.tensor->scalar_type();
  }
  return first;
}

}  // namespace

void check_numbers(const Operator& op, CallArgs args) {
  for (uint32_t left = op.row().fitting; left; left &= left - 1)
    if (auto i = static_cast<size_t>(std::countr_zero(left)); i < args.size() && is_number(args[i]))
      if (std::optional<DType> dtype = result_dtype(args)) number_of(args[i]).check_fits(*dtype);
  if (op.row().precondition) [[unlikely]]
    op.row().precondition(literals(op.row(), args));
}

namespace {

// Nothing is special to dispatch, so that a recording is asked first of all whether it expects the call.
inline bool goes_ahead(const Operator& op) {
  return op.plain() && !(op.casts() && autocasting()) && get_default_dtype() == DType::Float32;
}

bool gives_itself(const Operator& op, CallArgs args) {
  auto at = static_cast<size_t>(op.row().itself_unless);  // far behind the last one where there is none
  return at < args.size() && args[at].kind == Kind::Bool && args[at].integer == 0 && args[0].kind == Kind::Tensor &&
         args[0].tensor->defined();
}

}  // namespace

void call_functional(Operator& op, CallArgs args, Results& results) {
  if (!op.plain()) {
    for (const CallArg& a : args)
      if (a.kind == Kind::Tensors)
        for (uint32_t k = 0; k < a.size; ++k)
          BRASA_CHECK(a.tensor[k].defined(), op.row().name(), ": a tensor of the list is undefined");
    if (op.row().view && call_view(op, args, results)) return;
  }
  try {
    if (!op.plain()) {
      check_numbers(op, args);
      if (gives_itself(op, args)) return results.resize(1), void(results[0] = *args[0].tensor);
    }
    if (Recorder* recorder = Recorder::current()) [[unlikely]] {
      if (!goes_ahead(op) && recorder->follow(op.row(), args, results))
        return autograd::attach_recorded(op, args, *recorder, results);
      RecordedCall recorded(*recorder, op, args);
      recorded.run(results);
      recorded.lay_out(results);
      autograd::attach_recorded(op, recorded.args(), *recorder, results);
      if (runtime::Device* place = named_place(args)) [[unlikely]]
        move_to(*place, results);
      return;
    }
    Repeat repeat(op, args);
    if (repeat && repeat.run(results)) return;
    Run r(op, args, nullptr);
    r.order = order_of_result(op, args);
    run(r, results);
    if (repeat && r.variant) repeat.remember(*r.variant);
    if (!op.row().no_gradient) autograd::attach(*r.form, op.backward_name(), r.parsed.inputs, results);
    if (auto* traced = dynamic_cast<const Traced*>(r.form)) [[unlikely]]
      results.resize(traced->own_results());
    if (r.parsed.place) [[unlikely]]
      move_to(*r.parsed.place, results);
  } catch (const Error& e) {
    rethrow_named(op, args, e);
  }
}

runtime::Device& common_device(CallArgs args) {
  runtime::Device *found = nullptr, *number = nullptr;
  each_tensor(args, [&](const Tensor& t) {
    if (!t.defined()) return;
    const TensorImpl& impl = *impl_of(t);
    runtime::Device* device = &impl.device();
    if (device == found) return;
    bool goes_along = impl.storage->travels() || (impl.weak && impl.rank() == 0);
    if (goes_along && device->on_host()) return;
    if (impl.rank() == 0 && device->on_host())
      number = device;
    else if (!found)
      found = device;
    else
      fail(str("Expected all tensors to be on the same device, but found at least two devices, ", found->str(), " and ",
               device->str(), "!"));
  });
  if (found || number) return found ? *found : *number;
  if (runtime::Device* place = named_place(args)) return *place;
  return scoped_device() ? *scoped_device() : runtime::device_of(get_default_device());
}

namespace {

// A row that changes operands, as its schema says, gives their new values behind its results.
void write_operands(const ops::Row& row, CallArgs args, Results& results) {
  NoGradGuard guard;
  size_t value = row.schema.returns.size();
  for (size_t i = 0; i < args.size(); ++i)
    if (row.schema.params[i].mutated) args[i].tensor->copy_(results[value++]);
  results.resize(row.schema.returns.size());
}

// What an integer stands for in a recording that knows it as more than its value.
std::optional<ir::Expr> meaning(const CallArg& arg) {
  KnownSizes* known = KnownSizes::current();
  return known && arg.named && arg.kind == Kind::Int ? known->named(arg.size) : std::nullopt;
}

// What the length that follows from numbers is called there; 0: it does not know.
uint32_t name_of_length(const ops::Row& row, CallArgs args, ir::Args numbers) {
  bool any = false;
  for (size_t i = 0; i < args.size(); ++i) {
    std::optional<ir::Expr> e = meaning(args[i]);
    if (e) numbers[i] = ir::Arg(*e);
    any = any || e;
  }
  if (!any) return 0;
  try {
    ir::Facts facts;
    std::vector<ir::Type> types = ops::result_types(row, numbers, facts);
    return types.size() == 1 && types[0].rank() == 1 ? KnownSizes::current()->name_of(types[0].shape[0]) : 0;
  } catch (const Error&) {
    return 0;  // it follows from the values alone
  }
}

// The same where values say the length unless the caller does, by one of the numbers.
uint32_t name_of_given(CallArgs args, int64_t length) {
  for (const CallArg& arg : args)
    if (meaning(arg) && arg.integer == length) return arg.size;
  return 0;
}

// Integers with their names in a recording that goes on without knowing them; 0: there is none.
struct NamedSizes {
  std::vector<int64_t> items;
  std::vector<uint32_t> names;
  void add(int64_t size, uint32_t name) {
    items.push_back(size);
    names.push_back(name);
  }
};

// The sizes that a row's results have by its operands' values.
NamedSizes counted(Operator& op, CallArgs args) {
  NoGradGuard guard;
  Results counts;
  call_functional(eager::op(transforms::count_row(op.row())), args, counts);
  NamedSizes out;
  if (Recorder* recorder = Recorder::current()) {
    if (auto integers = recorder->integers(counts[0], str("the size of the result of ", op.row().name()))) {
      for (const Recorder::Integer& i : *integers) out.add(i.example, i.name);
      return out;
    }
    recorder->materialise(str(op.row().name(), ", whose result's size depends on values,").c_str());
  }
  Tensor all = counts[0].to(Device(kCPU), kInt64).contiguous();
  const auto* sizes = static_cast<const int64_t*>(impl_of(all)->data());
  for (int64_t i = 0; i < all.numel(); ++i) out.add(sizes[i], 0);
  return out;
}

// Do values say how much is to be computed? A recording does not read those that only bound it.
bool is_sized(const ops::Row& row) {
  return row.count || row.number_count || (row.bounds && !Recorder::current() && !KnownSizes::current());
}

// A row whose results' size depends on values or numbers: that is found first, and becomes one more argument.
void call_sized(Operator& op, CallArgs args, Results& results) {
  NamedSizes sizes;
  bool found = false;
  if (op.row().number_count) {
    try {
      check_numbers(op, args);
      ir::Args numbers = literals(op.row(), args);
      int64_t size = op.row().number_count(numbers);
      found = size >= 0 || !op.row().count;
      if (found)
        sizes.add(size,
                  op.row().count ? name_of_given(args, size) : name_of_length(op.row(), args, std::move(numbers)));
    } catch (const Error& e) {
      rethrow_named(op, args, e);
    }
  }
  if (!found) sizes = counted(op, args);
  std::vector<CallArg> with_count(args.begin(), args.end());
  Literals defaults;
  defaults.fill_up(with_count, op.row(), op.row().schema.params.size());
  size_t count = sizes.items.size();
  bool named = std::any_of(sizes.names.begin(), sizes.names.end(), [](uint32_t name) { return name != 0; });
  if (named) sizes.items.insert(sizes.items.end(), sizes.names.begin(), sizes.names.end());
  with_count.emplace_back(IntArrayRef(sizes.items.data(), count));
  with_count.back().named = named;
  call_functional(eager::op(transforms::sized_row(op.row())), with_count, results);
}

void call_memory(Operator& op, decltype(op.memory()) make, CallArgs args, Results& results) {
  try {
    const auto& params = op.row().schema.params;
    BRASA_CHECK(args.size() <= params.size(), op.row().name(), ": takes ", params.size(), " arguments, got ",
                args.size());
    for (size_t i = 0; i < args.size(); ++i)
      BRASA_CHECK(params[i].type != ir::ParamType::Tensor || args[i].kind == Kind::Tensor, op.row().name(),
                  ": argument '", params[i].name, "' is no tensor");
    results.resize(1);
    results[0] = make(args, literals(op.row(), args));
  } catch (const Error& e) {
    rethrow_named(op, args, e);
  }
}

void dispatch(Operator& op, CallArgs args, Results& results) {
  if (DType chosen = get_default_dtype(); chosen != DType::Float32) [[unlikely]]
    if (DefaultDtypeCall other(op, args, chosen); other) return dispatch(op, other.args(), results);
  if (op.plain() && !sparse::any_of(args) && !(op.casts() && autocasting())) [[likely]]
    return call_functional(op, args, results);
  if (sparse::any_of(args)) [[unlikely]]
    return sparse::call(op, args, results);
  if (int at = op.layout_parameter(); at >= 0 && static_cast<size_t>(at) < args.size() &&
                                      args[at].kind == Kind::Layout &&
                                      static_cast<Layout>(args[at].integer) != kStrided)
    return sparse::call_factory(op, args, results);
  if (op.sparse_gradient() >= 0 && sparse::gradient_asked_for(op, args)) [[unlikely]]
    return sparse::call_with_sparse_gradient(op, args, results);
  if (auto make = op.memory()) [[unlikely]]
    return call_memory(op, make, args, results);
  if (op.casts() && autocasting()) [[unlikely]]
    if (CastCall cast(op.row(), args); cast) return dispatch(op, cast.args(), results);
  if (is_sized(op.row())) return call_sized(op, args, results);
  call_functional(op, args, results);
  if (op.mutates() && results.size() > op.row().schema.returns.size()) write_operands(op.row(), args, results);
}

// A call that is only recorded does nothing yet.
struct OperatorSpan {
  OperatorSpan(const Operator& op, CallArgs args) {
    if (runtime::recording_spans() && !Recorder::current()) [[unlikely]]
      begin(op, args);
  }
  [[gnu::cold, gnu::noinline]] void begin(const Operator& op, CallArgs args) {
    span.emplace(runtime::SpanKind::Operator, op.row().name());
    if (!runtime::recording_shapes()) return;
    std::string shapes;
    each_tensor(args, [&](const Tensor& t) { append_shape(shapes, t); });
    span->set_shapes(std::move(shapes));
  }
  std::optional<runtime::HostSpan> span;
};

// The short way of a call that a recording expects.
inline bool expected(Operator& op, CallArgs args, Results& results) {
  Recorder* recorder = Recorder::current();
  if (!recorder || !goes_ahead(op)) return false;
  try {
    if (!recorder->follow(op.row(), args, results)) return false;
    if (GradMode::is_enabled()) autograd::attach_recorded(op, args, *recorder, results);
    return true;
  } catch (const Error& e) {
    rethrow_named(op, args, e);
  }
}

[[gnu::noinline]] void call_unexpected(Operator& op, CallArgs args, Results& results) {
  OperatorSpan span(op, args);
  dispatch(op, args, results);
}

}  // namespace

void call(Operator& op, CallArgs args, Results& results) {
  if (!expected(op, args, results)) call_unexpected(op, args, results);
}

Tensor call_one(Operator& op, CallArgs args) {
  Results results;
  if (!expected(op, args, results)) call_unexpected(op, args, results);
  return std::move(results[0]);
}

void call_many(Operator& op, CallArgs args, Tensor* out, size_t n) {
  Results results;
  call(op, args, results);
  BRASA_ASSERT(results.size() == n, op.row().name(), " gave ", results.size(), " results");
  for (size_t i = 0; i < n; ++i) out[i] = std::move(results[i]);
}

std::vector<Tensor> call_list(Operator& op, CallArgs args) {
  Results results;
  call(op, args, results);
  return results.take();
}

Tensor& call_in_place(Operator& op, CallArgs args, const Tensor& self) {
  OperatorSpan span(op, args);
  checked_impl(self);
  if (sparse::any_of(args)) [[unlikely]]
    return sparse::call_in_place(op, args, self);
  auto& out = const_cast<Tensor&>(self);
  TensorImpl* target = impl_of(self);
  try {
    check_numbers(op, args);
    autograd::check_in_place(self, args);
    if (may_overlap_itself(target->sizes, target->strides)) [[unlikely]] {
      fill_shared(op, args, self);
      return out;
    }
    auto shares = [&](const Tensor& t) { return overlaps(op, *target, t); };
    bool any = false;
    each_tensor(CallArgs(args.data() + 1, args.size() - 1), [&](const Tensor& t) { any = any || shares(t); });
    if (any) [[unlikely]]
      check_operands(op, args, 1, self);
    if (Recorder* recorder = Recorder::current()) [[unlikely]] {
      Results value;
      RecordedCall recorded(*recorder, op, args);
      if (!recorder->follow(op.row(), args, value)) recorded.run(value);
      autograd::Pending pending = autograd::prepare_recorded(op, recorded.args(), value[0], *recorder);
      if (value[0].scalar_type() != target->dtype) {
        check_in_place(value[0].scalar_type(), target->dtype);
        CallArg convert[] = {value[0], target->dtype};
        Tensor wide = value[0];
        recorder->call(ops::at("prim::convert"), convert, value);
      }
      BRASA_CHECK(value[0].sizes() == self.sizes(), "output with shape ", target->sizes,
                  " doesn't match the broadcast shape ", impl_of(value[0])->sizes);
      recorder->write(self, value[0]);
      target->storage->bump_version();
      autograd::rebase(self, std::move(pending));
      return out;
    }
    Run r(op, args, &self);
    Results results;
    if (any) {
      // What is read in another order than it is written is read from a copy; the first is what is written.
      ArgStore apart(args);
      for (Tensor& t : apart.tensors())
        if (&t != &apart.tensors().front() && shares(t)) t = t.clone();
      for (std::optional<Tensor>& t : apart.optional_tensors())
        if (t && shares(*t)) t = t->clone();
      return call_in_place(op, apart.args(), self);
    }
    autograd::InPlace in_place(self, op);
    r.in_place = &in_place;
    run(r, results);
    target->storage->bump_version();
    in_place.after(r.parsed.inputs);
  } catch (const Error& e) {
    rethrow_named(op, args, e);
  }
  return out;
}

Tensor with_options(Tensor t, const TensorOptions& options) {
  if (options.requires_grad()) t.set_requires_grad(true);
  return t;
}

}  // namespace brasa::eager
