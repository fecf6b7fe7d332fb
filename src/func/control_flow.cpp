#include <brasa/control_flow.h>

#include <algorithm>

#include <brasa/autograd.h>
#include <brasa/brasa.h>

#include "func/flow_rows.h"
#include "ops/branch.h"
#include "ops/loop.h"
#include "ops/while.h"
#include "support/error.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"

namespace brasa::detail {
namespace {

using func::BodyRecorder;
using func::Flow;
using func::FlowArguments;
using ir::Value;
using Values = std::vector<Value>;
using Bodies = std::vector<ops::BodyFunction>;

bool truth_of(std::string_view what, const Tensor& t) {
  BRASA_CHECK(t.defined() && t.numel() == 1, what, " is ", t, ", expected a tensor of one element");
  return t.item().toBool();
}

void append(TensorVector& to, const TensorVector& from) { to.insert(to.end(), from.begin(), from.end()); }

TensorVector items_at(const TensorVector& xs, int64_t t) {
  TensorVector out;
  for (const Tensor& x : xs) out.push_back(x.select(0, t));
  return out;
}

// A function that was recorded, and what its results are like.
struct Recorded {
  func::RecordedBody body;
  TensorVector results;
};
// `part_of` says how the function sees each of the given operands.
using Part = BodyRecorder::Part;
Part whole(size_t) { return Part::Whole; }
template <class F>
Recorded record(FlowArguments& arguments, std::string what, const TensorFunction& f, size_t first, F part_of) {
  BodyRecorder recorder(arguments, std::move(what));
  TensorVector in;
  for (size_t i = first; i < arguments.given; ++i) in.push_back(recorder.operand(i, part_of(i)));
  Recorded out;
  out.body = recorder.run([&] { return out.results = f(in); });
  return out;
}

// Records functions by `record`. False where that fails and the recording around may end: it has ended then, and functions run as they are
// written, since outside of recordings one that reads a value, writes in place or is never reached is no error.
template <class F>
bool recorded(std::string_view name, F record) {
  Recorder& around = *Recorder::current();
  if (!around.may_end()) return record(), true;
  std::string why;
  try {
    return record(), true;
  } catch (const std::exception& e) {
    why = e.what();
  }
  around.materialise(str(name, ", whose functions can't be recorded (", why.substr(0, why.find('\n')), "),").c_str());
  return false;
}

// As the rows of what was recorded give them: tensors of their own, though a step may hand on what it got, or give one tensor twice.
TensorVector own(TensorVector results) {
  for (Tensor& t : results)
    if (t.defined()) t = t.clone(MemoryFormat::Contiguous);
  return results;
}

bool alike(const Tensor& a, const Tensor& b) { return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes(); }

// States stay of one type, so that all steps are the same.
void check_states(std::string_view name, std::string_view f, const TensorVector& before, const TensorVector& after) {
  BRASA_CHECK(after.size() >= before.size(), name, ": ", f, " gives ", after.size(), " tensors for ", before.size(),
              " that are carried");
  for (size_t i = 0; i < before.size(); ++i)
    BRASA_CHECK(after[i].defined() && alike(before[i], after[i]), name, ": carried tensor ", i, " is ", before[i],
                " before ", f, ", and ", after[i], " after it");
}

int64_t count_items(std::string_view name, const TensorVector& xs) {
  BRASA_CHECK(!xs.empty(), name, ": there is no tensor to go along");
  for (const Tensor& x : xs)
    BRASA_CHECK(x.defined() && x.dim() > 0 && x.size(0) == xs[0].size(0), name,
                ": expected tensors with equally many items in their first dimension, got ", xs[0], " and ", x);
  BRASA_CHECK(xs[0].size(0) > 0, name, ": there are no items to go along: ", xs[0]);
  return xs[0].size(0);
}

// ---- The rows of what was recorded.

Value truth(Value v) { return ops::prim::reshape(ops::dtype_of(v) == DType::Bool ? v : ops::ne(v, 0), {}); }

// Operands: the predicate, then the functions' own.
Values build_cond(const Flow&, const Values& operands, const Bodies& bodies) {
  return ops::cond(truth(operands[0]), operands, bodies[0], bodies[1]);
}

// Operands: states, what the loop goes along, then others; the attribute says whether it goes backwards.
Values build_scan(const Flow& flow, const Values& operands, const Bodies& bodies) {
  auto at = [&](size_t place) { return operands.begin() + static_cast<std::ptrdiff_t>(place); };
  ops::LoopOperands loop{{operands.begin(), at(flow.along)},
                         {at(flow.along), at(flow.beyond)},
                         {at(flow.beyond), operands.end()},
                         {},
                         flow.attributes[0] != 0};
  loop.steps = ops::size_of(loop.along[0], 0);
  auto step = [&](std::span<const Value> carried, std::span<const Value> along, std::span<const Value> others) {
    Values in(carried.begin(), carried.end());
    in.insert(in.end(), along.begin(), along.end());
    in.insert(in.end(), others.begin(), others.end());
    return bodies[0](in);
  };
  Values out = ops::scan_loop(loop, step);
  for (size_t i = 0; i < loop.carried.size(); ++i) out[i] = ops::last_state(out[i], loop);
  return out;
}

// Operands: states, then others; the attribute says how many states there are.
Values build_while(const Flow& flow, const Values& operands, const Bodies& bodies) {
  auto states = operands.begin() + flow.attributes[0];
  return ops::while_loop(
      {operands.begin(), states}, {states, operands.end()},
      [&](std::span<const Value> in) { return Values{truth(bodies[0](in)[0])}; }, bodies[1]);
}

bool carry_gradients(const TensorVector& list) {
  return GradMode::is_enabled() &&
         std::any_of(list.begin(), list.end(), [](const Tensor& t) { return t.requires_grad(); });
}

// Results as they are, that also depend on tensors whose gradients through them are zeros.
struct Unread : autograd::Function<Unread> {
  static autograd::variable_list forward(autograd::AutogradContext* ctx, const TensorVector& results,
                                         const TensorVector& unread) {
    ctx->saved_data["results"] = static_cast<int64_t>(results.size());
    ctx->save_for_backward(unread);
    autograd::variable_list out;
    for (const Tensor& t : results) out.push_back(t.clone(MemoryFormat::Contiguous));
    autograd::variable_list whole;
    for (const Tensor& t : out)
      if (!t.is_floating_point() && !t.is_complex()) whole.push_back(t);
    ctx->mark_non_differentiable(whole);
    return out;
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx, autograd::variable_list grads) {
    for (const Tensor& t : ctx->get_saved_variables()) grads.push_back(zeros_like(t));
    return grads;
  }
};

// As a recorded branch does: every operand has a gradient, though the function that ran did not read it.
TensorVector depending_on(const TensorVector& operands, TensorVector results) {
  if (!carry_gradients(operands)) return own(std::move(results));
  TensorVector unread;
  for (const Tensor& t : operands)
    if (t.requires_grad()) unread.push_back(t);
  bool defined = std::all_of(results.begin(), results.end(), [](const Tensor& t) { return t.defined(); });
  return defined && !results.empty() ? Unread::apply(results, unread) : own(std::move(results));
}

}  // namespace

TensorVector cond(const Tensor& predicate, const TensorFunction& true_fn, const TensorFunction& false_fn,
                  const TensorVector& operands) {
  auto as_written = [&] {
    return depending_on(operands, (truth_of("cond: the predicate", predicate) ? true_fn : false_fn)(operands));
  };
  if (!Recorder::current()) return as_written();
  BRASA_CHECK(predicate.defined() && predicate.numel() == 1, "cond: the predicate is ", predicate,
              ", expected a tensor of one element");
  FlowArguments arguments;
  arguments.operands = {predicate};
  append(arguments.operands, operands);
  arguments.given = arguments.operands.size();
  Recorded yes, no;
  bool are = recorded("cond", [&] {
    yes = record(arguments, "cond: true_fn", true_fn, 1, whole);
    no = record(arguments, "cond: false_fn", false_fn, 1, whole);
    BRASA_CHECK(yes.results.size() == no.results.size(), "cond: true_fn gives ", yes.results.size(),
                " tensors, and false_fn ", no.results.size());
    for (size_t i = 0; i < yes.results.size(); ++i)
      BRASA_CHECK(alike(yes.results[i], no.results[i]), "cond: result ", i, " of true_fn is ", yes.results[i],
                  ", and of false_fn ", no.results[i]);
  });
  if (!are) return as_written();
  if (yes.results.empty()) return {};
  return func::call({"cond", build_cond, {}, {std::move(yes.body), std::move(no.body)}, 0, 0}, arguments);
}

TensorVector scan(std::string_view name, const TensorFunction& step, const TensorVector& init, const TensorVector& xs,
                  const TensorVector& others, bool reverse) {
  std::string_view f = name == "scan" ? "combine_fn" : "f";
  int64_t steps = count_items(name, xs);
  auto as_written = [&] {
    TensorVector carried = init;
    std::vector<TensorVector> ys;  // by result, then by item
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = reverse ? steps - 1 - k : k;
      TensorVector in = carried;
      append(in, items_at(xs, t));
      append(in, others);
      TensorVector out = step(in);
      check_states(name, f, carried, out);
      ys.resize(out.size() - carried.size(), TensorVector(static_cast<size_t>(steps)));
      for (size_t i = 0; i < out.size(); ++i)
        (i < carried.size() ? carried[i] : ys[i - carried.size()][static_cast<size_t>(t)]) = out[i];
    }
    TensorVector results = own(std::move(carried));
    for (const TensorVector& items : ys) results.push_back(stack(items));
    return results;
  };
  if (!Recorder::current()) return as_written();
  FlowArguments arguments;
  arguments.operands = init;
  append(arguments.operands, xs);
  append(arguments.operands, others);
  arguments.given = arguments.operands.size();
  size_t first = init.size(), last = first + xs.size();
  Recorded body;
  bool is = recorded(name, [&] {
    body = record(arguments, str(name, ": ", f), step, 0, [&](size_t i) {
      return i < first ? Part::State : i < last ? Part::Item : Part::Whole;
    });
    check_states(name, f, init, body.results);
  });
  if (!is) return as_written();
  if (body.results.empty()) return {};
  return func::call({std::string(name), build_scan, {reverse}, {std::move(body.body)}, first, last}, arguments);
}

// A scan over all items but the first, which is the first partial result.
TensorVector associative_scan(const TensorFunction& combine, const TensorVector& xs, bool reverse) {
  int64_t n = count_items("associative_scan", xs);
  if (n == 1) return own(xs);
  TensorVector rest, out;
  for (const Tensor& x : xs) rest.push_back(x.narrow(0, reverse ? 0 : 1, n - 1));
  auto step = [&](const TensorVector& in) {
    TensorVector next = combine(in);
    BRASA_CHECK(next.size() == xs.size(), "associative_scan: combine_fn gives ", next.size(), " tensors for ",
                xs.size());
    TensorVector both = next;
    append(both, next);
    return both;
  };
  TensorVector first = items_at(xs, reverse ? n - 1 : 0);
  TensorVector all = scan("associative_scan", step, first, rest, {}, reverse);
  for (size_t i = 0; i < xs.size(); ++i) {
    Tensor begin = first[i].unsqueeze(0), partial = all[xs.size() + i];
    out.push_back(reverse ? cat({partial, begin}) : cat({begin, partial}));
  }
  return out;
}

TensorVector while_loop(const TensorFunction& cond_fn, const TensorFunction& body_fn, const TensorVector& carried) {
  auto check_body = [](const TensorVector& before, const TensorVector& after) {
    BRASA_CHECK(after.size() == before.size(), "while_loop: body_fn gives ", after.size(), " tensors for ",
                before.size(), " that are carried");
    check_states("while_loop", "body_fn", before, after);
  };
  Recorder* recorder = Recorder::current();
  bool are = true;
  if (recorder && !carried.empty() && !carry_gradients(carried)) {
    FlowArguments arguments;
    arguments.operands = carried;
    arguments.given = carried.size();
    auto state = [](size_t) { return Part::StateWithoutGradient; };
    Recorded condition, body;
    are = recorded("while_loop", [&] {
      condition = record(arguments, "while_loop: cond_fn", cond_fn, 0, state);
      body = record(arguments, "while_loop: body_fn", body_fn, 0, state);
      const Tensor& goes_on = condition.results.at(0);
      BRASA_CHECK(goes_on.numel() == 1, "while_loop: the result of cond_fn is ", goes_on,
                  ", expected a tensor of one element");
      check_body(carried, body.results);
    });
    if (are && !carry_gradients(arguments.operands))
      return func::call({"while_loop",
                         build_while,
                         {static_cast<int64_t>(carried.size())},
                         {std::move(condition.body), std::move(body.body)},
                         0,
                         0},
                        arguments);
  }
  // How many steps there are to go back is known only when they have been made.
  if (recorder && are) recorder->materialise("while_loop with gradients");
  TensorVector now = carried;
  while (truth_of("while_loop: the result of cond_fn", cond_fn(now).at(0))) {
    TensorVector next = body_fn(now);
    check_body(now, next);
    now = std::move(next);
  }
  return own(std::move(now));
}

}  // namespace brasa::detail
