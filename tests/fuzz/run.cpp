#include <algorithm>

#include "capture/situations.h"
#include "compile_cost.h"
#include "compiler/compile.h"
#include "fuzz/operators.h"
#include "support/processor_time.h"

namespace brasa::fuzz {
namespace {

// What one run of a program saw, call by call.
struct Run {
  std::vector<Seen> calls;
  bool ended = false;
};

test::CompileCost g_cost;

class Runner {
 public:
  Runner(const Program& p, const Mode* mode, double shift) : program_(p), shift_(shift), compiled_(mode) {
    world_.dtype = p.single ? kFloat32 : kFloat64;
    world_.parameters = {values({4, 4}, 1).requires_grad_(), values({1, 4}, 2).requires_grad_()};
    world_.state = values({2, 1}, 3);
    world_.call = [this](int function, const Tensor& a, const Tensor& b) {
      // Functions call later ones alone.
      size_t f = function_ + 1 + static_cast<size_t>(function) % functions_.size();
      return f < functions_.size() ? nested(f, a, b) : Tensor();
    };
    for (const auto& body : p.functions)
      for (const Instruction& i : body)
        watches_ = watches_ || i.op == "hook" || i.op == "hook parameter" || i.op == "retain";
    Wrap compile = wrap_for(mode);
    for (size_t f = 0; f < p.functions.size(); ++f)
      functions_.push_back(compile([this, f](const Tensors& in) { return body(f, in); }));
  }

  /// Microseconds of processor time of a function and what its caller does with the results.
  double time(const Call& c) {
    Seen seen;
    Inputs in = inputs_of(c, 0);
    int64_t begin = processor_time();
    after(c, functions_[static_cast<size_t>(c.function) % functions_.size()]({in.x, in.y}), in.leaf, seen);
    return static_cast<double>(processor_time() - begin) * 1e-3;
  }

  Run run() {
    Run out;
    manual_seed(7);
    for (size_t k = 0; k < program_.calls.size(); ++k) {
      Seen seen;
      try {
        call(program_.calls[k], static_cast<int>(k), seen);
      } catch (const Error& e) {
        seen.note(std::string("error: ") + e.what());
        out.calls.push_back(std::move(seen));
        return out;
      }
      out.calls.push_back(std::move(seen));
    }
    out.ended = true;
    return out;
  }

 private:
  Tensor values(IntArrayRef sizes, int salt) const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return ((arange(n, kFloat64) * 0.37 + 0.1 + salt).sin() * (1 + shift_)).to(world_.dtype).reshape(sizes).clone();
  }

  Tensor nested(size_t f, const Tensor& a, const Tensor& b) {
    size_t before = std::exchange(function_, f);
    Tensors out = functions_[f]({a, b});
    function_ = before;
    return out.empty() ? Tensor() : out.back();
  }

  Tensors body(size_t f, const Tensors& in) {
    std::vector<Tensor> stack = in;
    function_ = f;
    for (const Instruction& i : program_.functions[f]) {
      auto at = [&](int k) { return stack[stack.size() - 1 - static_cast<size_t>(k) % stack.size()]; };
      Tensor a = at(i.a), b = at(i.b);
      Tensor made = operators().at(i.op)(world_, a, b, i);
      function_ = f;
      if (made.defined() && made.dim() == 2 && made.size(0) > 0 && made.size(1) > 0) stack.push_back(made);
    }
    Tensors out = {stack.back()};
    if (stack.size() > 3) out.insert(out.begin(), stack[stack.size() - 2]);
    return out;
  }

  struct Inputs {
    Tensor leaf, x, y;
  };
  Inputs inputs_of(const Call& c, int index) {
    world_.number = c.number * 0.1;
    world_.retained.clear();
    world_.noted.clear();
    Tensor leaf = c.shared_tensor && shared_.defined() ? shared_ : values({c.rows, 4}, 10 + index);
    shared_ = leaf;
    leaf.set_requires_grad(c.gradient);
    Tensor x = c.leaf ? leaf : leaf * 1, y;
    switch (c.alias) {
      case Alias::Same: y = x; break;
      case Alias::View: y = x.view({4, x.size(0)}); break;
      case Alias::Transposed: y = x.t(); break;
      case Alias::Overlap: y = x.narrow(1, 1, 3); break;
      case Alias::Stepped: y = x.slice(0, 0, x.size(0), 2); break;
      default: y = values({c.rows, 4}, 20 + index);
    }
    if (c.hook && x.requires_grad()) x.register_hook([](const Tensor& g) { return g * 3; });
    return {leaf, x, y};
  }

  void call(const Call& c, int index, Seen& seen) {
    auto [leaf, x, y] = inputs_of(c, index);
    auto run = [&, &leaf = leaf, &x = x, &y = y] {
      Tensors out = functions_[static_cast<size_t>(c.function) % functions_.size()]({x, y});
      seen.add(out);
      after(c, out, leaf, seen);
    };
    compiled_ ? g_cost.of("call " + std::to_string(index) + " of\n" + text(program_), run) : run();
    seen.add({leaf, world_.state, leaf.grad()});
    for (const Tensor& p : world_.parameters) seen.add({p, p.grad()});
    for (const Tensor& t : world_.retained) seen.add(t.grad().defined() ? t.grad().contiguous().clone() : Tensor());
    for (double v : world_.noted) seen.add(full({1}, v, kFloat64));
  }

  void after(const Call& c, const Tensors& out, const Tensor& leaf, Seen& seen) {
    Tensor loss;
    for (const Tensor& t : out)
      if (t.requires_grad()) loss = loss.defined() ? loss + t.sin().sum() : t.sin().sum();
    if (!loss.defined()) return;
    switch (c.after) {
      case After::Backward: loss.backward(); break;
      case After::Twice:
        loss.backward({}, true);
        loss.backward();
        break;
      case After::EachResult:
        for (const Tensor& t : out)
          if (t.requires_grad()) t.square().sum().backward({}, true);
        break;
      case After::Gradient:
      case After::SecondDerivative: {
        // What sees a gradient in between sees how derivatives are computed: of results, or of operands.
        bool second = c.after == After::SecondDerivative && !watches_;
        Tensors wanted = world_.parameters;
        if (leaf.requires_grad()) wanted.push_back(leaf);
        Tensors g = autograd::grad({loss}, wanted, {}, true, second, true);
        Tensor penalty;
        for (const Tensor& t : g) {
          seen.add(t.defined() ? t.detach().contiguous().clone() : Tensor());
          if (second && t.defined() && t.requires_grad())
            penalty = penalty.defined() ? penalty + t.tanh().square().sum() : t.tanh().square().sum();
        }
        if (penalty.defined()) penalty.backward();
        break;
      }
      default: break;
    }
  }

  const Program& program_;
  double shift_;
  bool compiled_;
  World world_;
  std::vector<TensorFunction> functions_;
  size_t function_ = 0;
  bool watches_ = false;
  Tensor shared_;
};

// Eagerly where the mode is null.
Run run(const Program& p, const Mode* mode, double shift = 0) { return Runner(p, mode, shift).run(); }

std::string first_difference(const Run& a, const Run& b, double tolerance) {
  for (size_t k = 0; k < a.calls.size(); ++k) {
    // Where eager refuses, compiled code may know better: it keeps what was overwritten. And where eager keeps what it computed,
    // compiled code may keep the inputs, and refuse when they were written since.
    if (!a.ended && k + 1 == a.calls.size()) break;
    if (k < b.calls.size() && b.calls[k].mentions("modified by an inplace operation")) break;
    if (k >= b.calls.size()) return "call " + std::to_string(k) + " is missing";
    if (std::string d = a.calls[k].difference(b.calls[k], tolerance); !d.empty())
      return "call " + std::to_string(k) + ": " + d;
  }
  return "";
}

}  // namespace

bool accepted(const Program& p) { return run(p, nullptr).ended; }

std::optional<Times> times(const Program& p) {
  constexpr int kWarm = 240, kPairs = 150;  // a compiled function may measure itself in the first ones
  Mode automatic = modes()[0];
  automatic.options.backend = "inductor";
  auto median = [](std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + kPairs / 2, v.end());
    return v[kPairs / 2];
  };
  try {
    Runner eager(p, nullptr, 0), compiled(p, &automatic, 0);
    std::vector<double> plain, fast;
    for (int k = 0; k < kWarm; ++k) {
      eager.time(p.calls[0]);
      compiled.time(p.calls[0]);
    }
    for (int k = 0; k < kPairs; ++k) {
      plain.push_back(eager.time(p.calls[0]));
      fast.push_back(compiled.time(p.calls[0]));
    }
    return Times{median(plain), median(fast)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string compile_cost() { return g_cost.text(); }

std::string difference(const Program& p, const std::string& backend) {
  bool single = p.single;
  for (const auto& body : p.functions)
    for (const Instruction& i : body) single = single || i.op == "double" || i.op == "cast";
  // Strict numbers are the same to the bit, so that comparisons fall on the same side.
  const bool strict = compiler::default_numbers() == compiler::Numbers::Strict;
  double tolerance = strict ? 0 : single ? 2e-3 : 1e-7;
  Run eager = run(p, nullptr);
  for (const Mode& mode : modes()) {
    Mode with_backend = mode;
    with_backend.options.backend = backend;
    std::string found;
    try {
      found = first_difference(eager, run(p, &with_backend), tolerance);
    } catch (const std::exception& e) {
      found = e.what();
    }
    if (found.empty()) continue;
    if (strict) return std::string(mode.name) + ": " + found;
    // Numbers at an edge (a comparison, a branch) may fall on either side.
    for (double shift : {1e-13, -1e-13, 1e-7})
      if (!first_difference(eager, run(p, nullptr, single ? shift * 1e3 : shift), tolerance * 100).empty()) return "";
    return std::string(mode.name) + ": " + found;
  }
  return "";
}

}  // namespace brasa::fuzz
