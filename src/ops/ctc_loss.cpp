#include <limits>

#include "ops/loop.h"
#include "ops/positions.h"
#include "ops/rows.h"
#include "support/error.h"

// Connectionist temporal classification (Graves et al. 2006): the probability of a sequence of labels, summed over all its
// alignments with the steps. Labels are interleaved with blanks; α is the forward variable of eq. 6, β the backward one, both
// with the present step's probability in them.
namespace brasa::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Ctc {
  Value log_probs;                      // [all steps, N, C]
  Value labels;                         // [N, L], blanks in between
  Value emitted;                        // [T, N, L]: the log probability of each label at each step
  Value skips;                          // [N, L]: may the blank before a label be left out?
  Value input_lengths, target_lengths;  // [N]
  bool unbatched;
  Expr steps;  // T
  Expr width;
};

Value lengths_value(const Shape& lengths) {
  std::vector<Value> parts;
  for (Expr e : lengths) parts.push_back(size_tensor(e, {Expr(1)}));
  return parts.empty() ? full(0, {Expr(0)}, DType::Int64) : prim::concat(parts, 0);
}

// `most` is a bound on the lengths of the inputs, behind which nothing is computed, and `longest` one on those of the targets.
Ctc ctc(Value log_probs, Value targets, Value input_lengths, Value target_lengths, int64_t blank, Expr most,
        Expr longest) {
  constexpr const char* op = "ctc_loss";
  Ctc c;
  c.unbatched = rank_of(log_probs) == 2;
  BRASA_CHECK((c.unbatched || rank_of(log_probs) == 3) && is_floating(dtype_of(log_probs)), op,
              ": expected floating log_probs of 2 or 3 dimensions, got ", type_of(log_probs));
  c.log_probs = c.unbatched ? unsqueeze(log_probs, 1) : log_probs;
  Expr batch = size_of(c.log_probs, 1), classes = size_of(c.log_probs, 2);
  BRASA_CHECK(is_integral(dtype_of(targets)) && (rank_of(targets) == 1 || rank_of(targets) == 2), op,
              ": expected integer targets of 1 or 2 dimensions, got ", type_of(targets));
  BRASA_CHECK(blank >= 0 && is_less(Expr(blank), classes), op, ": blank must be in label range, expected [0, ", classes,
              "), got ", blank);
  for (Value lengths : {input_lengths, target_lengths})
    BRASA_CHECK(is_integral(dtype_of(lengths)) && rank_of(lengths) <= 1 && same_size(type_of(lengths).numel(), batch),
                op, ": expected input_lengths and target_lengths of ", batch, " integers, got ", type_of(lengths));
  c.input_lengths = prim::reshape(convert(input_lengths, DType::Int64), {batch});
  c.target_lengths = prim::reshape(convert(target_lengths, DType::Int64), {batch});
  c.steps = ir::min(size_of(c.log_probs, 0), ir::max(most, Expr(1)));
  auto check_lengths = [&](Value lengths, Expr bound, const char* what) {
    check_values(logical_and(ge(lengths, 0), le(lengths, size_tensor(bound, {batch}))),
                 str(op, ": Expected ", what, " to be between 0 and ", bound));
  };
  check_lengths(c.input_lengths, size_of(c.log_probs, 0), "input_lengths");
  bool padded = rank_of(targets) == 2;
  check_lengths(c.target_lengths, padded ? size_of(targets, 1) : longest, "target_lengths");
  // The labels of each sample beside one another, [N, longest].
  Shape shape = {batch, longest};
  Value flat = convert(flattened(targets), DType::Int64), place = prim::iota(shape, 1, DType::Int64);
  Value begin;
  if (padded) {
    BRASA_CHECK(same_size(size_of(targets, 0), batch), op, ": expected targets of ", batch, " samples, got ",
                type_of(targets));
    begin = prim::iota({batch}, 0, DType::Int64) * size_tensor(size_of(targets, 1), {batch});
  } else {
    check_values(eq(sum(c.target_lengths, {0}), size_tensor(size_of(targets, 0), {})),
                 str(op, ": Expected targets of 1 dimension to have as many elements as target_lengths add up to, got ",
                     type_of(targets)));
    begin = narrow(segment_starts(c.target_lengths), 0, 0, batch);
  }
  Value valid = lt(place, prim::broadcast(c.target_lengths, shape, {0}));
  Value label = full(Number(blank), shape, DType::Int64);
  if (!same_size(longest, 0)) {
    Value at = where(valid, prim::broadcast(begin, shape, {0}) + place, zeros_like(place));
    label = prim::gather(flat, {at}, {0});
    label = where(valid, label, zeros_like(label));
    check_values(logical_and(ge(label, 0), lt(label, size_tensor(classes, shape))),
                 str(op, ": expected targets in [0, ", classes, ")"));
  }
  c.width = longest * Expr(2) + 1;
  c.labels = prim::pad(label, full(Number(blank), {}, DType::Int64), {Expr(0), Expr(1)}, {Expr(0), Expr(1)},
                       {Expr(0), Expr(1)});
  c.labels = narrow(c.labels, 1, 0, c.width);
  Value index = prim::broadcast(c.labels, {c.steps, batch, c.width}, {1, 2});
  c.emitted = gather_along(narrow(c.log_probs, 0, 0, c.steps), 2, index);
  Value two_before = narrow(pad_dim(c.labels, 1, 2, 0, Number(blank)), 1, 0, c.width);
  // Of blanks every second one is equal, too; a label may be the blank itself.
  c.skips = ne(c.labels, two_before);
  return c;
}

// log(exp a + exp b + exp c), also where all are -inf.
Value log_sum(Value a, Value b, Value c) {
  Value most = maximum(maximum(a, b), c);
  Value safe = where(eq(most, -kInfinity), zeros_like(most), most);
  return log(exp(a - safe) + exp(b - safe) + exp(c - safe)) + safe;
}

Value never(Value like) { return constant_like(like, -kInfinity); }

// A condition on each step and sample, [T, N]: how the sample's length compares with the step.
Value steps_where(const Ctc& c, const char* comparison, int64_t more) {
  Shape shape = {c.steps, size_of(c.log_probs, 1)};
  Value step = prim::iota(shape, 0, DType::Int64) + more;
  return prim::binary(comparison, prim::broadcast(c.input_lengths, shape, {1}), step);
}

// α of every step, [T, N, L].
Value forward_variables(const Ctc& c) {
  Value first = squeeze(narrow(c.emitted, 0, 0, 1), 0), place = prim::iota(shape_of(first), 1, DType::Int64);
  Value last = prim::broadcast(c.target_lengths, shape_of(first), {0}) * 2;
  first = where(logical_and(le(place, 1), le(place, last)), first, never(first));
  auto later = [&](Value v) { return narrow(v, 0, 1, c.steps - 1); };
  LoopOperands loop{{first}, {later(c.emitted), later(steps_where(c, "gt", 0))}, {c.skips}, c.steps - 1};
  return scan_loop(loop,
                   [](std::span<const Value> states, std::span<const Value> items, std::span<const Value> others) {
                     Value a = states[0];
                     Expr width = size_of(a, 1);
                     Value one = narrow(pad_dim(a, 1, 1, 0, -kInfinity), 1, 0, width),
                           two = narrow(pad_dim(a, 1, 2, 0, -kInfinity), 1, 0, width);
                     Value next = log_sum(a, one, where(others[0], two, never(a))) + items[0];
                     return std::vector{where(unsqueeze(items[1], 1), next, a)};
                   })[0];
}

// β of every step, [T, N, L]; nothing after a sample's last step.
Value backward_variables(const Ctc& c) {
  Value like = squeeze(narrow(c.emitted, 0, 0, 1), 0), place = prim::iota(shape_of(like), 1, DType::Int64);
  Value last = prim::broadcast(c.target_lengths, shape_of(like), {0}) * 2;
  Value ends = logical_and(ge(place, last - 1), le(place, last));
  Value skips = narrow(pad_dim(c.skips, 1, 0, 2, false), 1, 2, c.width);
  LoopOperands loop{
      {never(like)}, {c.emitted, steps_where(c, "eq", 1), steps_where(c, "gt", 0)}, {ends, skips}, c.steps, true};
  auto step = [](std::span<const Value> states, std::span<const Value> items, std::span<const Value> others) {
    Value next = states[0], emitted = items[0], nothing = never(next);
    Expr width = size_of(next, 1);
    Value one = narrow(pad_dim(next, 1, 0, 1, -kInfinity), 1, 1, width),
          two = narrow(pad_dim(next, 1, 0, 2, -kInfinity), 1, 2, width);
    Value b = log_sum(next, one, where(others[1], two, nothing)) + emitted;
    b = where(unsqueeze(items[1], 1), where(others[0], emitted, nothing), b);
    return std::vector{where(unsqueeze(items[2], 1), b, nothing)};
  };
  return states_after(scan_loop(loop, step)[0], loop);
}

// {-log p of each sample, α [N, all steps, L]}
std::array<Value, 2> negative_log_likelihood(const Ctc& c) {
  Expr all_steps = size_of(c.log_probs, 0);
  BRASA_CHECK(is_less(0, all_steps), "ctc_loss: expected log_probs of at least one step, got ", type_of(c.log_probs));
  Value alphas = forward_variables(c);
  Value last = squeeze(narrow(alphas, 0, c.steps - 1, 1), 0), end = unsqueeze(c.target_lengths * 2, 1);
  Value blank = gather_along(last, 1, end);
  Value label = gather_along(last, 1, maximum(end - 1, zeros_like(end)));
  label = where(eq(end, 0), never(label), label);
  Value loss = -squeeze(log_sum(blank, label, never(blank)), 1);
  // Without a step only the empty target is certain.
  Value none = where(eq(c.target_lengths, 0), zeros_like(loss), constant_like(loss, kInfinity));
  loss = where(eq(c.input_lengths, 0), none, loss);
  if (!(c.steps == all_steps)) alphas = pad_dim(alphas, 0, 0, all_steps - c.steps, -kInfinity);
  return {loss, transpose(alphas, 0, 1)};
}

std::array<Value, 2> ctc_results(const Ctc& c) {
  auto [loss, alpha] = negative_log_likelihood(c);
  return {c.unbatched ? squeeze(loss, 0) : loss, c.unbatched ? squeeze(alpha, 0) : alpha};
}

// The derivative by log_probs, as if these came from log_softmax: p minus the probability of being there (eq. 16).
Value ctc_gradient(Value ct, const Ctc& c, Value loss, Value log_alpha, bool zero_infinity) {
  Expr batch = size_of(c.log_probs, 1);
  BRASA_CHECK(same_size(size_of(log_alpha, 1), size_of(c.log_probs, 0)), "ctc_loss: expected log_alpha of ",
              size_of(c.log_probs, 0), " steps, got ", type_of(log_alpha));
  Value alpha = narrow(transpose(log_alpha, 0, 1), 0, 0, c.steps), beta = backward_variables(c);
  loss = prim::reshape(loss, {Expr(1), batch, Expr(1)});
  ct = prim::reshape(ct, {Expr(1), batch, Expr(1)});
  Value both = alpha + beta;
  Value here = where(eq(both, -kInfinity), zeros_like(both), exp(both - c.emitted + loss));
  Shape shape = shape_of(here);
  Value index = prim::broadcast(c.labels, shape, {1, 2});
  Value occupied = prim::scatter(zeros_like(c.log_probs), indices_along(shape, 2, index), here, {0, 1, 2}, "add");
  Value g = (exp(c.log_probs) - occupied) * ct;
  Value impossible = eq(loss, kInfinity);
  double instead = zero_infinity ? 0 : std::numeric_limits<double>::quiet_NaN();
  g = where(impossible, constant_like(loss, instead), g);
  Value t = prim::iota(shape_of(g), 0, DType::Int64);
  g = where(lt(t, prim::broadcast(c.input_lengths, shape_of(g), {1})), g, zeros_like(g));
  return c.unbatched ? squeeze(g, 1) : g;
}

Expr most_of(Value, const Shape& lengths) {
  Expr most(0);
  for (Expr e : lengths) most = ir::max(most, e);
  return most;
}
Expr longest_of(Value targets, const Shape& lengths) {
  return rank_of(targets) == 2 ? size_of(targets, 1) : most_of(targets, lengths);
}
// Lengths that are only known when the graph runs are at most the number of steps, and of labels.
Expr most_of(Value log_probs, Value) { return size_of(log_probs, 0); }
Expr longest_of(Value targets, Value) { return size_of(targets, rank_of(targets) - 1); }
Value lengths_value(Value v) { return v; }

// {the longest input, the longest target}
Value bounds_of(Value in, Value out) {
  std::vector<Value> bounds;
  for (Value lengths : {in, out}) {
    Value all = convert(flattened(lengths), DType::Int64);
    bounds.push_back(amax(prim::concat({all, full(0, {Expr(1)}, DType::Int64)}, 0), {0}, true));
  }
  return prim::concat(bounds, 0);
}

// The lengths are in tensors, which the bounds were read from. They are checked where they are used.
Ctc ctc_within(Value log_probs, Value targets, Value in, Value out, const Shape& bounds, int64_t blank) {
  BRASA_CHECK(bounds.size() == 2, "ctc_loss: expected bounds on the lengths of inputs and of targets, got ", bounds);
  return ctc(log_probs, targets, in, out, blank, bounds[0], ir::min(bounds[1], longest_of(targets, out)));
}

std::array<Value, 2> forward_within(Value log_probs, Value targets, Value in, Value out, Shape bounds, int64_t blank,
                                    bool) {
  return ctc_results(ctc_within(log_probs, targets, in, out, bounds, blank));
}

std::vector<Value> vjp_within(const Saved& s) {
  if (!s.ct()) return {};
  Ctc c = ctc_within(s.in(0), s.in(1), s.in(2), s.in(3), s.arg<Shape>(4), s.arg<int64_t>(5));
  return {ctc_gradient(s.ct(), c, s.out(0), c.unbatched ? unsqueeze(s.out(1), 0) : s.out(1), s.arg<bool>(6))};
}

template <class Lengths>
Ctc ctc_of(Value log_probs, Value targets, const Lengths& in, const Lengths& out, int64_t blank) {
  return ctc(log_probs, targets, lengths_value(in), lengths_value(out), blank, most_of(log_probs, in),
             longest_of(targets, out));
}

template <class Lengths>
std::array<Value, 2> ctc_forward(Value log_probs, Value targets, Lengths in, Lengths out, int64_t blank, bool) {
  return ctc_results(ctc_of(log_probs, targets, in, out, blank));
}

template <class Lengths>
Value ctc_backward(Value ct, Value log_probs, Value targets, Lengths in, Lengths out, Value loss, Value alpha,
                   int64_t blank, bool zero_infinity) {
  Ctc c = ctc_of(log_probs, targets, in, out, blank);
  return ctc_gradient(ct, c, loss, c.unbatched ? unsqueeze(alpha, 0) : alpha, zero_infinity);
}

template <class Lengths>
std::vector<Value> ctc_vjp(const Saved& s) {
  if (!s.ct()) return {};
  return {ctc_backward<Lengths>(s.ct(), s.in(0), s.in(1), s.arg<Lengths>(2), s.arg<Lengths>(3), s.out(0), s.out(1),
                                s.arg<int64_t>(4), s.arg<bool>(5))};
}

// The forward variables are kept for the derivative alone: they have no tangent.
template <std::vector<Value> (*vjp)(const Saved&)>
std::vector<Value> ctc_pushforward(const ir::Node& n, std::span<const Value> tangents) {
  if (!tangents[0]) return {{}, {}};
  Saved s{n.args, {const_cast<ir::Node&>(n).out(0), const_cast<ir::Node&>(n).out(1)}, {}};
  s.cts = {constant_like(s.out(), 1)};
  Dims steps_and_labels = rank_of(s.in(0)) == 3 ? Dims{0, 2} : Dims{0, 1};
  return {sum(vjp(s)[0] * tangents[0], steps_and_labels), {}};
}

Value reduced_loss(Value loss, Value target_lengths, int64_t reduction, bool zero_infinity) {
  if (zero_infinity) loss = where(eq(loss, kInfinity), zeros_like(loss), loss);
  if (reduction == 1) {
    Value n = convert(prim::reshape(target_lengths, shape_of(loss)), dtype_of(loss));
    loss = loss / maximum(n, constant_like(n, 1));
    return mean(loss, all_dims(loss));
  }
  return reduction == 2 ? sum(loss, all_dims(loss)) : loss;
}

template <class Lengths>
Value ctc_loss(Value log_probs, Value targets, Lengths in, Lengths out, int64_t blank, int64_t reduction,
               bool zero_infinity) {
  constexpr bool is_value = std::is_same_v<Lengths, Value>;
  Value loss = call_all(is_value ? "aten::_ctc_loss.Tensor" : "aten::_ctc_loss",
                        {log_probs, targets, Arg(in), Arg(out), blank, zero_infinity})[0];
  return reduced_loss(loss, lengths_value(out), reduction, zero_infinity);
}

Value loss_within(Value log_probs, Value targets, Value in, Value out, int64_t blank, int64_t reduction,
                  bool zero_infinity, Shape bounds) {
  Value loss = call_all("brasa::ctc_loss_within", {log_probs, targets, in, out, Arg(bounds), blank, zero_infinity})[0];
  return reduced_loss(loss, out, reduction, zero_infinity);
}

template <class Lengths>
void add_forms(Table& t, const std::string& overload, const std::string& type, const SampleArg& in,
               const SampleArg& out) {
  std::string dot = overload.empty() ? "" : "." + overload;
  std::string operands = str("Tensor log_probs, Tensor targets, ", type, " input_lengths, ", type, " target_lengths");
  // Where exp(log_probs) is nothing beside 1, the derivative is that of the formula.
  TensorSample unlikely = floats(3, 2, 3).in(-22, -20);
  TensorSample log_probs = floats(3, 2, 3).in(-2, -0.5), targets = ints(2, 1).in(1, 3);
  t.op(str("aten::_ctc_loss", dot, "(", operands, ", int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)"))
      .doc("-log p of each sample's labels, and the forward variables.")
      .composed_in_opmath(ctc_forward<Lengths>)
      .vjp(own_derivative(ctc_vjp<Lengths>))
      .jvp(ctc_pushforward<ctc_vjp<Lengths>>)
      .samples({{unlikely, targets, in, out}});
  t.op(str("aten::_ctc_loss_backward", dot, "(Tensor grad, ", operands,
           ", Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor"))
      .doc("The derivative of ctc_loss by log_probs, as if these came from log_softmax.")
      .composed_in_opmath(ctc_backward<Lengths>)
      .samples({{floats(2), log_probs, targets, in, out, floats(2).in(2, 3), floats(2, 3, 3).in(-4, -2), 0}});
  RowBuilder loss = t.op(str("aten::ctc_loss.", overload.empty() ? "IntList" : overload, "(", operands,
                             ", int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor"));
  loss.doc(
          "-log of the probability of the labels, summed over all alignments with the steps (Graves et al. 2006), and reduced. "
          "The derivative takes log_probs to come from log_softmax.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(ctc_loss<Lengths>)
      .samples({{unlikely, targets, in, out}, {unlikely, targets, in, out, 0, 2, true}});
  if constexpr (std::is_same_v<Lengths, Value>)
    loss.bounded([](Value, Value, Value in, Value out, int64_t, int64_t, bool) { return bounds_of(in, out); },
                 loss_within);
}

void add_within(Table& t) {
  TensorSample unlikely = floats(3, 2, 3).in(-22, -20);
  t.op("brasa::ctc_loss_within(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, SymInt[] bounds, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)")
      .doc("As _ctc_loss, where no input is longer than the first bound, and no target longer than the second.")
      .not_in_pytorch()
      .composed_in_opmath(forward_within)
      .vjp(own_derivative(vjp_within))
      .jvp(ctc_pushforward<vjp_within>)
      .samples({{unlikely, ints(2, 4).in(1, 3), ints(2).in(2, 4), ints(2).in(1, 2), list({3, 1})}});
}

}  // namespace

void add_ctc_loss(Table& t) {
  add_forms<Shape>(t, "", "int[]", list({3, 2}), list({1, 1}));
  add_forms<Value>(t, "Tensor", "Tensor", ints(2).in(2, 4), ints(2).in(1, 2));
  add_within(t);
}

}  // namespace brasa::ops
