#include "call.h"

#include <brasa/autograd.h>
#include <brasa/brasa.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compare.h"
#include "gauge.h"
#include "ops/decompose.h"
#include "ops/primitives/interp.h"
#include "samples.h"
#include "support/str.h"

namespace brasa::test {
namespace {

using ops::Array;

// The seed of run_interpreter's key.
constexpr uint64_t kSeed = 2147483647;

std::vector<bool> mutated_tensors(const Call& call) {
  std::vector<bool> out(call.tensors.size());
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!call.row->schema.params[i].mutated) continue;
    if (auto* one = std::get_if<int>(&call.args[i]); one && *one >= 0) out[*one] = true;
    if (auto* list = std::get_if<std::vector<int>>(&call.args[i]))
      for (int k : *list) out[k] = true;
  }
  return out;
}

bool differentiable(DType t) { return is_floating(t) || is_complex(t); }

Array direction(const Array& like, double phase) {
  Array a = ops::make_array(like.dtype, like.shape);
  for (int64_t i = 0; i < a.numel(); ++i) {
    double x = 1.7 * static_cast<double>(i) + phase;
    if (is_complex(like.dtype))
      ops::set_complex(a, i, {std::sin(x), std::cos(x)});
    else
      ops::set(a, i, std::sin(x));
  }
  return a;
}

bool has_nan(const Array& a) {
  for (int64_t i = 0; differentiable(a.dtype) && i < a.numel(); ++i)
    if (std::isnan(ops::get_complex(a, i).real())) return true;
  return false;
}

// A factorisation that says in `info` that it failed leaves its other results open.
bool failed(const ops::Row& row, const Outcome& outcome) {
  const auto& returns = row.schema.returns;
  for (size_t i = 0; i < returns.size() && i < outcome.outputs.size(); ++i)
    if (returns[i].name == "info")
      for (int64_t k = 0; k < outcome.outputs[i].numel(); ++k)
        if (ops::get_int(outcome.outputs[i], k) != 0) return true;
  return false;
}

std::string overload_of(const ops::Row& row) {
  std::string name = row.name();
  name.replace(name.find("::"), 2, ".");
  return std::count(name.begin(), name.end(), '.') == 1 ? name + ".default" : name;
}

// The tolerances of the reference vectors; what has none gets those that most have.
verify::Card card_of(const std::string& overload) {
  static const auto all = verify::read_cards(BRASA_TEST_DATA "/ops");
  if (auto it = all.find(overload); it != all.end()) return it->second;
  verify::Card card;
  card.values = card.gradients = {
      {DType::Float64, 1e-9}, {DType::Float32, 1e-5}, {DType::BFloat16, 0.016}, {DType::Float16, 0.002}};
  return card;
}

verify::Array to_verify(const Array& a) { return {a.dtype, a.shape, a.data, {}}; }

}  // namespace

bool takes(const ops::Row& row, Layout layout) {
  if (layout == Layout::RowMajor) return true;
  if (row.memory != ops::Memory::None || row.over_storage) return false;
  if (layout != Layout::Expanded) return true;
  Recorded r = record(sample_call(row, row.samples.at(0), false), false);
  auto primitives = ops::decompose(*r.graph, r.facts);
  const auto& nodes = primitives->nodes();
  return std::none_of(nodes.begin(), nodes.end(),
                      [](const ir::Node* n) { return ops::kind_of(*n) == ops::Kind::Whole; });
}

struct SizedCall::Answer {
  verify::Outcome outcome;
  std::optional<std::string> refused, broken;
  bool by_library = false;
};

SizedCall::SizedCall(const ops::Row& row, const ops::Sample& sample, Manner manner)
    : row_(row), sample_(sample), manner_(manner) {
  try {
    expect();
  } catch (const Error& e) {
    refused_ = e.what();
  } catch (const std::exception& e) {
    broken_ = e.what();
  }
}

// Numbers at random, so that matrices are regular.
void SizedCall::fill() {
  std::mt19937 random(kSeed);
  size_t at = 0;
  auto tensor = [&](const ops::TensorSample& s) {
    Array& a = call_.tensors.at(at++).array;
    std::uniform_real_distribution<double> numbers(s.low, s.high);
    for (int64_t i = 0; i < a.numel(); ++i) {
      double v = numbers(random);
      is_integral(a.dtype, true) ? ops::set_int(a, i, static_cast<int64_t>(std::floor(v))) : ops::set(a, i, v);
    }
  };
  for (const ops::SampleArg& arg : sample_.args) {
    if (auto* one = std::get_if<ops::TensorSample>(&arg)) tensor(*one);
    if (auto* list = std::get_if<std::vector<ops::TensorSample>>(&arg))
      for (const ops::TensorSample& s : *list) tensor(s);
  }
}

void SizedCall::expect() {
  call_ = plain_call(row_, sample_, manner_.wide);
  fill();
  std::vector<bool> mutated = mutated_tensors(call_);
  for (size_t i = 0; i < call_.tensors.size(); ++i) {
    Array& a = call_.tensors[i].array;
    if (!mutated[i]) a = fitting(a, manner_.layout);
    call_.needs_gradient[i] =
        manner_.gradients != Gradients::None && !row_.no_gradient && !mutated[i] && differentiable(a.dtype);
  }
  expected_ = run_interpreter(counted(call_), false);
  bool any = std::find(call_.needs_gradient.begin(), call_.needs_gradient.end(), true) != call_.needs_gradient.end();
  if (!any) return;
  bool writes = std::find(mutated.begin(), mutated.end(), true) != mutated.end();
  std::vector<std::optional<Array>> cotangents;
  for (size_t i = 0; i < expected_.outputs.size(); ++i) {
    const Array& o = expected_.outputs[i];
    bool result = !writes || i < row_.schema.returns.size();
    cotangents.push_back(result && differentiable(o.dtype) ? std::optional(direction(o, static_cast<double>(i)))
                                                           : std::nullopt);
  }
  call_.cotangents = std::move(cotangents);
  expected_ = run_interpreter(counted(call_), false);
}

SizedCall::Answer SizedCall::answer(const Runner& runner) const {
  Answer out;
  std::vector<bool> mutated = mutated_tensors(call_);
  std::vector<Tensor> tensors, asked;
  pack::SampleCall call(row_, sample_.args, [&](const ops::TensorSample&) {
    size_t i = tensors.size();
    Tensor t = placed(call_.tensors[i].array,
                      mutated[i] && manner_.layout == Layout::Expanded ? Layout::RowMajor : manner_.layout);
    if (call_.needs_gradient[i] && !call_.cotangents.empty()) asked.push_back(t.requires_grad_());
    tensors.push_back(t);
    if (t.requires_grad() && manner_.gradients == Gradients::OfClones) t = t.clone();
    return t;
  });
  manual_seed(kSeed);
  try {
    std::vector<Tensor> results = runner(call.args());
    for (const Tensor& t : results)
      out.outcome.outputs.push_back(t.defined() ? std::optional(to_verify(elements(t))) : std::nullopt);
    for (const Tensor& t : tensors) out.outcome.inputs_after.push_back(to_verify(elements(t)));
    if (call_.cotangents.empty()) return out;
    std::vector<Tensor> roots, given, gradients(asked.size());
    for (size_t i = 0; i < results.size() && i < call_.cotangents.size(); ++i)
      if (call_.cotangents[i] && results[i].defined() && results[i].requires_grad()) {
        roots.push_back(results[i]);
        given.push_back(
            placed(*call_.cotangents[i], manner_.layout == Layout::Expanded ? Layout::RowMajor : manner_.layout));
      }
    if (!roots.empty()) gradients = autograd::grad(roots, asked, given, std::nullopt, false, true);
    for (size_t i = 0, k = 0; i < tensors.size(); ++i) {
      out.outcome.gradients.emplace_back();
      if (!call_.needs_gradient[i]) continue;
      if (gradients[k].defined()) out.outcome.gradients.back() = to_verify(elements(gradients[k]));
      ++k;
    }
  } catch (const Error& e) {
    out.refused = e.what();
    out.by_library = out.refused->find("failed to converge") != std::string::npos;
  } catch (const std::exception& e) {
    out.broken = e.what();
  }
  return out;
}

verify::Entry SizedCall::entry() const {
  verify::Entry want;
  for (const CallTensor& t : call_.tensors) want.tensors.push_back(to_verify(t.array));
  want.needs_gradient = call_.needs_gradient;
  for (const auto& c : call_.cotangents) want.cotangents.push_back(c ? std::optional(to_verify(*c)) : std::nullopt);
  for (const Array& a : expected_.outputs) want.outputs.emplace_back(to_verify(a));
  want.changed.resize(want.tensors.size());
  std::vector<bool> mutated = mutated_tensors(call_);
  if (std::find(mutated.begin(), mutated.end(), true) != mutated.end()) {
    size_t next = row_.schema.returns.size();
    for (size_t i = 0; i < mutated.size() && next < want.outputs.size(); ++i)
      if (mutated[i]) want.changed[i] = want.outputs[next++];
    want.outputs.resize(row_.schema.returns.size());
  }
  for (const auto& g : expected_.gradients) want.gradients.push_back(g ? std::optional(to_verify(*g)) : std::nullopt);
  want.metadata_only = row_.memory != ops::Memory::None;
  return want;
}

std::optional<std::string> SizedCall::compare(const Runner& runner, const Answer& got) const {
  std::string overload = overload_of(row_);
  verify::Card card = card_of(overload);
  verify::Entry want = entry();
  auto wrong = verify::check(want, got.outcome, card);
  if (!wrong) return wrong;
  auto aligned = verify::in_basis_of(overload, want, got.outcome);
  if (!aligned) return wrong;
  if (aligned->cotangents.empty()) return verify::check(*aligned, got.outcome, card);
  SizedCall turned = *this;
  for (size_t i = 0; i < aligned->cotangents.size(); ++i)
    if (const auto& c = aligned->cotangents[i]) turned.call_.cotangents[i] = Array{c->dtype, c->shape, c->bytes};
  return verify::check(*aligned, turned.answer(runner).outcome, card);
}

std::optional<std::string> SizedCall::check(const Runner& runner) const {
  if (broken_) return str("the interpreter fails: ", *broken_);
  Answer got = answer(runner);
  if (got.broken) return str("is no error of the user's: ", *got.broken);
  if (refused_ && !got.refused) return str("was accepted, the interpreter says: ", *refused_);
  if (got.refused && !refused_) {
    bool by_strides = !row_.must_alias.empty() && manner_.layout != Layout::RowMajor;
    // Libraries refuse matrices that are not numbers, which the interpreter takes.
    bool by_numbers = got.by_library && std::any_of(expected_.outputs.begin(), expected_.outputs.end(), has_nan);
    return by_strides || by_numbers ? std::nullopt : std::optional(str("was refused: ", *got.refused));
  }
  if (refused_ || failed(row_, expected_)) return std::nullopt;
  auto wrong = compare(runner, got);
  if (!wrong || manner_.wide) return wrong;
  // A difference that goes with wider numbers is one of rounding.
  Manner wide = manner_;
  wide.wide = true;
  return SizedCall(row_, sample_, wide).check(runner) ? wrong : std::nullopt;
}

}  // namespace brasa::test
