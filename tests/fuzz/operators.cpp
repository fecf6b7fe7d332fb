#include "fuzz/operators.h"

#include <cmath>
#include <memory>

#include <brasa/control_flow.h>

namespace brasa::fuzz {
namespace {

struct Halve : autograd::Function<Halve> {
  static Tensor forward(autograd::AutogradContext* c, const Tensor& x) {
    c->save_for_backward({x});
    return x.sin() * 0.5;
  }
  static autograd::variable_list backward(autograd::AutogradContext* c, autograd::variable_list g) {
    return {g[0] * c->get_saved_variables()[0].cos() * 0.5};
  }
};

// b in a shape that goes with a's.
Tensor fit(const Tensor& b, const Tensor& a) {
  if (b.sizes() == a.sizes()) return b;
  if (b.size(1) == a.size(1)) return b.narrow(0, 0, 1);
  if (b.size(0) == a.size(0)) return b.narrow(1, 0, 1);
  return b.mean().reshape({1, 1});
}

// Added to what values are compared with: a sum that is 0 or a multiple of the call's number but for its rounding is on one side of it.
constexpr double kOdd = 0.0037;

bool small(const Tensor& t) { return t.size(0) <= 12 && t.size(1) <= 12; }
int64_t part(int c, int64_t size) { return size > 0 ? c % size : 0; }

// Whether autograd lets it be written.
bool writable(const Tensor& t) {
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.stride(d) == 0 && t.size(d) > 1) return false;
  if (!GradMode::is_enabled() || !t.requires_grad()) return true;
  if (t.is_leaf()) return false;
  return !t.is_view() || !(t._base().is_leaf() && t._base().requires_grad());
}

Operator write(std::function<void(World&, const Tensor& a, const Tensor& b, const Instruction&)> f) {
  return [f](World& w, const Tensor& a, const Tensor& b, const Instruction& i) {
    if (writable(a)) f(w, a, b, i);
    return Tensor();
  };
}

using T = const Tensor&;
using I = const Instruction&;

void hook(World& w, T a, I i) {
  double factor = 1 + i.c % 3;
  a.register_hook([factor](const Tensor& g) { return g * factor; });
  if (i.b % 2)
    a.register_hook([&w](const Tensor& g) {
      w.noted.push_back(g.detach().sum().item<double>());
      return g;
    });
}

std::map<std::string, Operator> table() {
  std::map<std::string, Operator> t;
  // Element by element.
  t["sin"] = [](World&, T a, T, I) { return a.sin(); };
  t["tanh"] = [](World&, T a, T, I) { return a.tanh(); };
  t["exp"] = [](World&, T a, T, I) { return (-a.square()).exp(); };
  t["sigmoid"] = [](World&, T a, T, I) { return a.sigmoid() * a; };
  t["root"] = [](World&, T a, T, I) { return (a.square() + 1).sqrt() - 1; };
  t["add"] = [](World&, T a, T b, I) { return a + fit(b, a); };
  t["sub"] = [](World&, T a, T b, I) { return fit(b, a) - a; };
  t["mul"] = [](World&, T a, T b, I) { return a * fit(b, a).tanh(); };
  t["div"] = [](World&, T a, T b, I) { return a / (fit(b, a).square() + 1); };
  t["maximum"] = [](World&, T a, T b, I) { return maximum(a, fit(b, a) + 0.01); };
  // Stays as it is: what follows is of mixed dtypes.
  t["cast"] = [](World&, T a, T, I i) { return (a * 4).to(i.c == 5 ? kInt64 : i.c % 2 ? kFloat32 : kFloat64); };
  t["where"] = [](World&, T a, T b, I) { return where(a > 0.05 + kOdd, fit(b, a), a * 2); };
  t["masked"] = [](World& w, T a, T b, I) { return a.masked_fill(fit(b, a) > 0.3 + kOdd, w.number); };
  t["double"] = [](World& w, T a, T, I) { return a.to(w.dtype == kFloat64 ? kFloat32 : kFloat64).sin().to(w.dtype); };
  t["count"] = [](World& w, T a, T, I) { return (a > 0.1 + kOdd).to(kInt64).cumsum(1).to(w.dtype); };
  t["custom"] = [](World&, T a, T, I) { return Halve::apply(a); };
  // With the call's number.
  t["times number"] = [](World& w, T a, T, I) { return a * w.number; };
  t["plus number"] = [](World& w, T a, T b, I) { return add(a, fit(b, a), w.number); };
  t["number minus"] = [](World& w, T a, T, I) { return w.number - a; };
  t["clamp"] = [](World& w, T a, T, I) { return a.clamp(Scalar(-w.number - 0.1), Scalar(w.number + 0.3)); };
  t["pow"] = [](World& w, T a, T, I) { return (a.square() + 0.5).pow(w.number + 0.5).tanh(); };
  t["leaky"] = [](World& w, T a, T, I) { return leaky_relu(a, w.number); };
  t["penalty"] = [](World& w, T a, T, I i) { return a + w.number * w.parameters[i.c % 2].square().sum(); };
  t["full"] = [](World& w, T a, T, I) { return full_like(a, w.number) * a; };
  // Views and movements.
  t["t"] = [](World&, T a, T, I) { return a.t(); };
  t["narrow"] = [](World&, T a, T, I i) {
    int64_t n = a.size(i.c % 2), from = part(i.b, n);
    return n > 1 ? a.narrow(i.c % 2, from, n - from) : Tensor();
  };
  t["half"] = [](World&, T a, T, I i) {
    int64_t n = a.size(i.c % 2);
    return n > 1 ? a.narrow(i.c % 2, n / 2, n - n / 2) : Tensor();
  };
  t["row"] = [](World&, T a, T, I i) {
    return a.size(0) > 0 ? a.select(0, part(i.c, a.size(0))).unsqueeze(i.b % 2) : Tensor();
  };
  t["slice"] = [](World&, T a, T, I i) { return a.slice(i.c % 2, i.b % 2, a.size(i.c % 2), 2); };
  t["flat"] = [](World&, T a, T, I i) { return a.numel() <= 12 ? a.reshape({i.c % 2 ? a.numel() : 1, -1}) : Tensor(); };
  t["view"] = [](World&, T a, T, I) { return a.is_contiguous() ? a.view({a.size(1), a.size(0)}) : Tensor(); };
  t["expand"] = [](World&, T a, T, I) { return a.narrow(0, 0, 1).expand({3, a.size(1)}); };
  t["chunk"] = [](World&, T a, T, I i) { return a.chunk(2, i.c % 2)[0]; };
  t["split"] = [](World&, T a, T, I) { return a.split((a.size(0) + 1) / 2, 0).back(); };
  t["squeeze"] = [](World&, T a, T, I) { return a.unsqueeze(1).transpose(0, 2).squeeze(1); };
  t["detach"] = [](World&, T a, T, I) { return a.detach(); };
  t["clone"] = [](World&, T a, T, I) { return a.clone(); };
  t["contiguous"] = [](World&, T a, T, I) { return a.contiguous(); };
  t["flip"] = [](World&, T a, T, I i) { return a.flip({i.c % 2}); };
  t["roll"] = [](World&, T a, T, I) { return a.roll({a.size(0) / 2}, {0}); };
  t["cat"] = [](World&, T a, T b, I) {
    return a.size(1) == b.size(1) && a.size(0) + b.size(0) <= 12 ? cat({a, b}, 0) : Tensor();
  };
  t["stack"] = [](World&, T a, T b, I) {
    return a.sizes() == b.sizes() && a.size(0) <= 6 ? stack({a, b}, 1).reshape({-1, a.size(1)}) : Tensor();
  };
  t["pad"] = [](World&, T a, T, I i) { return small(a) ? constant_pad_nd(a, {i.c % 2, 1}, 0.5) : Tensor(); };
  t["tril"] = [](World&, T a, T, I i) { return a.tril(i.c % 3 - 1); };
  t["diagonal"] = [](World&, T a, T, I) { return a.diagonal().unsqueeze(0); };
  t["unfold"] = [](World&, T a, T, I) { return a.size(1) > 1 ? a.unfold(1, 2, 1).select(2, 0) : Tensor(); };
  // Whole rows and columns.
  t["sum"] = [](World&, T a, T, I i) { return a.sum(i.c % 2, true); };
  t["mean"] = [](World&, T a, T, I i) { return a - a.mean(i.c % 2, true); };
  t["amax"] = [](World&, T a, T, I i) { return a.amax({i.c % 2}, true); };
  t["softmax"] = [](World&, T a, T, I i) { return a.softmax(i.c % 2); };
  t["cumsum"] = [](World&, T a, T, I i) { return a.cumsum(i.c % 2) * 0.3; };
  t["norm"] = [](World&, T a, T, I) { return layer_norm(a, {a.size(1)}, {}, {}, 0.1); };
  t["matmul"] = [](World&, T a, T b, I) {
    return a.size(1) == b.size(0) ? a.matmul(b.to(a.scalar_type())).tanh() : a.matmul(a.t()).tanh();
  };
  t["linear"] = [](World& w, T a, T, I) {
    const Tensor& p = w.parameters[0];
    return a.size(1) == p.size(0) ? a.matmul(p.to(a.scalar_type())).tanh() : Tensor();
  };
  t["parameter"] = [](World& w, T a, T, I i) { return a + fit(w.parameters[i.c % 2], a); };
  t["gather"] = [](World&, T a, T, I) { return a.gather(1, a.detach().argsort(int64_t{1})); };
  t["index"] = [](World&, T a, T, I) { return a.index_select(0, arange((a.size(0) + 1) / 2, kInt64) * 2); };
  t["arange"] = [](World& w, T a, T, I) { return a + arange(a.size(1), w.dtype) / (a.size(1) + 1); };
  t["dropout"] = [](World&, T a, T, I) { return dropout(a, 0.5, true); };
  // Writes.
  t["add_"] = write([](World&, T a, T b, I) { a.add_(fit(b, a)); });
  t["mul_"] = write([](World& w, T a, T, I) { a.mul_(w.number + 0.5); });
  t["copy_"] = write([](World&, T a, T b, I) { a.copy_(fit(b, a)); });
  t["sin_"] = write([](World&, T a, T, I) { a.copy_(a.sin()); });
  t["fill_"] = write([](World& w, T a, T, I) { a.fill_(w.number); });
  t["zero part"] = write([](World&, T a, T, I i) { a.narrow(0, 0, part(i.c, a.size(0))).zero_(); });
  t["add to part"] = write([](World&, T a, T b, I i) {
    Tensor to = a.slice(i.c % 2, i.b % 2, a.size(i.c % 2), 2);
    to.add_(fit(b, to));
  });
  t["mul diagonal"] = write([](World&, T a, T, I) { a.diagonal().mul_(2); });
  t["index_add_"] = write([](World&, T a, T b, I) {
    if (b.size(1) == a.size(1)) a.index_add_(0, arange(1, kInt64), b.narrow(0, 0, 1).to(a.scalar_type()));
  });
  t["state"] = [](World& w, T a, T, I) {
    NoGradGuard guard;
    w.state.mul_(0.5).add_(a.mean());
    return Tensor();
  };
  t["use state"] = [](World& w, T a, T, I) { return a * w.state; };
  t["state row"] = [](World& w, T a, T, I i) {
    NoGradGuard guard;
    w.state.narrow(0, i.c % 2, 1).copy_(a.amax());
    return a * w.state.sum();
  };
  // Breaks.
  t["branch"] = [](World&, T a, T, I) { return a.sum().item<double>() > 0.1 + kOdd ? a * 2 : a - 1; };
  t["note"] = [](World& w, T a, T, I) {
    w.noted.push_back(a.detach().mean().item<double>());
    return Tensor();
  };
  t["read"] = [](World& w, T a, T, I) {
    Tensor all = a.detach().to(kFloat64).cpu().contiguous();
    w.noted.push_back(all.numel() ? *static_cast<const double*>(all.data_ptr()) : 0);
    return Tensor();
  };
  t["nonzero"] = [](World& w, T a, T, I) { return (a.detach() > 0.2 + kOdd).nonzero().to(w.dtype); };
  // Control flow.
  t["cond"] = [](World& w, T a, T b, I i) {
    // Recorded, a gradient flows to what either branch reads: both read the same.
    Tensor other = fit(b, a) + w.parameters[i.c % 2].sum();
    return cond(
        a.detach().sum() > w.number - 0.3 + kOdd, [&] { return (a * other).to(a.scalar_type()); },
        [&] { return (a + other.sin()).to(a.scalar_type()); });
  };
  t["scan"] = [](World& w, T a, T b, I i) {
    Tensor start = a.detach().select(0, 0) * 0, scale = b.mean();
    auto step = [&](Tensor carry, Tensor row) {
      Tensor next = (row * scale + carry * w.number).sin().to(a.scalar_type());
      return std::pair(next, next * row);
    };
    auto [last, rows] = scan(step, start, a, i.c % 2 == 1);
    return i.c < 3 ? rows : last.unsqueeze(0);
  };
  t["map"] = [](World& w, T a, T b, I i) {
    auto row = [&](Tensor x) { return x.softmax(0) * b.sum() + w.parameters[i.c % 2].mean(); };
    return map(row, a);
  };
  t["associative scan"] = [](World&, T a, T, I i) {
    return associative_scan([](Tensor x, Tensor y) { return x * 1 + y; }, a, i.c % 2 == 1);
  };
  t["while"] = [](World& w, T a, T, I) {
    auto more = [&](Tensor n, Tensor) { return n < w.number * 5; };
    auto step = [](Tensor n, Tensor x) { return std::pair(n + 1, (x * 0.5 + x.sin()).to(x.scalar_type())); };
    return while_loop(more, step, zeros({}, a.scalar_type()), a).second;
  };
  // Autograd.
  t["no_grad"] = [](World&, T a, T b, I) {
    NoGradGuard guard;
    return a * fit(b, a);
  };
  t["hook"] = [](World& w, T a, T, I i) {
    if (a.requires_grad()) hook(w, a, i);
    return Tensor();
  };
  t["hook parameter"] = [](World& w, T, T, I i) {
    hook(w, w.parameters[i.c % 2], i);
    return Tensor();
  };
  t["retain"] = [](World& w, T a, T, I) {
    if (!a.requires_grad() || a.is_leaf()) return Tensor();
    a.retain_grad();
    w.retained.push_back(a);
    return Tensor();
  };
  t["backward"] = [](World&, T a, T, I) {
    if (a.requires_grad()) a.tanh().sum().backward({}, true);
    return Tensor();
  };
  t["gradient"] = [](World& w, T a, T, I i) {
    if (!a.requires_grad()) return Tensor();
    Tensor g = autograd::grad({a.sin().sum()}, {w.parameters[i.c % 2]}, {}, true, i.b % 2 == 0, true)[0];
    return g.defined() ? g.contiguous().tanh() : Tensor();
  };
  t["second derivative"] = [](World& w, T a, T, I i) {
    if (!a.requires_grad()) return Tensor();
    Tensor g = autograd::grad({a.sin().sum()}, {w.parameters[i.c % 2]}, {}, true, true, true)[0];
    if (g.defined() && g.requires_grad()) g.tanh().square().sum().backward({}, true);
    return Tensor();
  };
  t["update"] = [](World& w, T, T, I i) {
    NoGradGuard guard;
    Tensor p = w.parameters[i.c % 2];
    if (p.grad().defined()) p.sub_(p.grad().tanh(), 0.1);
    return Tensor();
  };
  t["zero grad"] = [](World& w, T, T, I i) {
    w.parameters[i.c % 2].mutable_grad().reset();
    return Tensor();
  };
  t["leaf"] = [](World& w, T a, T, I) {
    Tensor leaf = a.detach().clone().requires_grad_();
    w.retained.push_back(leaf);
    return leaf * 1;
  };
  t["call"] = [](World& w, T a, T b, I i) { return w.call(i.c, a, b); };
  return t;
}

}  // namespace

const std::map<std::string, Operator>& operators() {
  static const auto* all = new std::map<std::string, Operator>(table());
  return *all;
}

}  // namespace brasa::fuzz
