#include "training.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include <brasa/brasa.h>
#include <brasa/error.h>

namespace brasa::verify {
namespace {

using nlohmann::json;
namespace schedules = optim::lr_scheduler;

Tensor activate(const std::string& name, const Tensor& x) {
  if (name == "gelu") return gelu(x);
  if (name == "tanh") return x.tanh();
  if (name == "relu") return x.relu();
  if (name == "silu") return silu(x);
  throw Error("there is no activation '" + name + "' in the training references");
}

Tensor mlp(const json& model, const Parameters& p, const Tensor& x) {
  Tensor h = activate(model.at("activation"), linear(x, p.at("w1"), p.at("b1")));
  return linear(h, p.at("w2"), p.at("b2"));
}

Tensor vit(const Parameters& p, const Tensor& x) {
  constexpr int64_t kWidth = 32, kHeads = 4, kBlocks = 2, kPatch = 4;
  int64_t n = x.size(0);
  auto norm = [&](const Tensor& t, const std::string& name) {
    return layer_norm(t, {kWidth}, p.at(name + ".w"), p.at(name + ".b"), 1e-6);
  };
  auto dense = [&](const Tensor& t, const std::string& name) {
    return linear(t, p.at(name + ".w"), p.at(name + ".b"));
  };
  Tensor t = conv2d(x, p.at("patch.w"), p.at("patch.b"), {kPatch, kPatch}).flatten(2).transpose(1, 2);
  int64_t tokens = t.size(1) + 1;
  t = cat({p.at("cls").expand({n, 1, kWidth}), t}, 1) + p.at("pos");
  for (int64_t i = 0; i < kBlocks; ++i) {
    std::string block = "block" + std::to_string(i) + ".";
    Tensor qkv = dense(norm(t, block + "norm1"), block + "qkv")
                     .reshape({n, tokens, 3, kHeads, kWidth / kHeads})
                     .permute({2, 0, 3, 1, 4});
    Tensor weights = (qkv[0].matmul(qkv[1].transpose(-2, -1)) / std::sqrt(double(kWidth) / kHeads)).softmax(-1);
    Tensor attended = weights.matmul(qkv[2]).transpose(1, 2).reshape({n, tokens, kWidth});
    t = t + dense(attended, block + "proj");
    t = t + dense(gelu(dense(norm(t, block + "norm2"), block + "fc1")), block + "fc2");
  }
  return dense(norm(t, "norm").select(1, 0), "head");
}

void assign(double& to, const json& v) { to = v; }
void assign(int64_t& to, const json& v) { to = v; }
void assign(bool& to, const json& v) { to = v; }
void assign(std::string& to, const json& v) { to = v; }
template <class T>
void assign(std::optional<T>& to, const json& v) {
  if (v.is_null()) {
    to.reset();
  } else {
    assign(to.emplace(), v);
  }
}
template <class A, class B>
void assign(std::tuple<A, B>& to, const json& v) {
  assign(std::get<0>(to), v.at(0));
  assign(std::get<1>(to), v.at(1));
}
template <class T>
void assign(std::vector<T>& to, const json& v) {
  to = v.is_array() ? v.get<std::vector<T>>() : std::vector<T>{v.get<T>()};
}

// Arguments by name; what nobody asked for is an error.
class Arguments {
 public:
  Arguments(const std::string& owner, const json& args) : owner_(owner), args_(args) {}
  template <class T>
  void read(const char* name, T& to) {
    known_.insert(name);
    if (args_.contains(name)) assign(to, args_.at(name));
  }
  template <class T>
  T get(const char* name, T value) {
    read(name, value);
    return value;
  }
  double required(const char* name) {
    if (!args_.contains(name)) throw Error(owner_ + " needs the argument '" + name + "'");
    return get(name, 0.0);
  }
  void finish() const {
    for (const auto& [name, value] : args_.items())
      if (!known_.count(name)) throw Error(owner_ + " has no argument '" + name + "'");
  }

 private:
  std::string owner_;
  const json& args_;
  std::set<std::string> known_;
};

template <class Class, class Options>
std::unique_ptr<optim::Optimizer> made(Arguments args, Options o, const std::vector<Tensor>& parameters) {
#define READ(name) \
  if constexpr (requires { o.name(); }) args.read(#name, o.name());
  READ(lr)
  READ(betas)
  READ(eps)
  READ(weight_decay)
  READ(amsgrad)
  READ(maximize)
  READ(momentum)
  READ(dampening)
  READ(nesterov)
  READ(alpha)
  READ(centered)
  READ(rho)
  READ(lambd)
  READ(t0)
  READ(lr_decay)
  READ(initial_accumulator_value)
  READ(etas)
  READ(step_sizes)
  READ(momentum_decay)
  READ(decoupled_weight_decay)
  READ(beta2_decay)
  READ(d)
  READ(max_iter)
  READ(max_eval)
  READ(tolerance_grad)
  READ(tolerance_change)
  READ(history_size)
  READ(line_search_fn)
  READ(ns_steps)
  READ(adjust_lr_fn)
#undef READ
  // The references are by torch.optim of Python.
  if constexpr (requires { o.search_within_max_eval(); }) o.search_within_max_eval(true);
  args.finish();
  return std::make_unique<Class>(parameters, std::move(o));
}

// `0.95 ** epoch` and its like: + - * / // ** and brackets over numbers and `epoch`, as Python reads them.
class Expression {
 public:
  Expression(std::string text, double epoch) : text_(std::move(text)), epoch_(epoch) {}
  double value() {
    double v = sum();
    skip();
    if (at_ != text_.size()) fail();
    return v;
  }

 private:
  [[noreturn]] void fail() const { throw Error("cannot read '" + text_ + "' from character " + std::to_string(at_)); }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(const char* token) {
    skip();
    std::string_view t = token;
    if (text_.compare(at_, t.size(), t) != 0) return false;
    if (t == "*" && text_.compare(at_, 2, "**") == 0) return false;
    at_ += t.size();
    return true;
  }
  double sum() {
    double v = product();
    for (;;) {
      if (take("+"))
        v += product();
      else if (take("-"))
        v -= product();
      else
        return v;
    }
  }
  double product() {
    double v = power();
    for (;;) {
      if (take("*"))
        v *= power();
      else if (take("//"))
        v = std::floor(v / power());
      else if (take("/"))
        v /= power();
      else
        return v;
    }
  }
  double power() {
    if (take("-")) return -power();
    double v = atom();
    return take("**") ? std::pow(v, power()) : v;
  }
  double atom() {
    if (take("(")) {
      double v = sum();
      if (!take(")")) fail();
      return v;
    }
    if (take("epoch")) return epoch_;
    skip();
    const char* begin = text_.c_str() + at_;
    char* end = nullptr;
    double v = std::strtod(begin, &end);
    if (end == begin) fail();
    at_ += static_cast<size_t>(end - begin);
    return v;
  }
  std::string text_;
  double epoch_;
  size_t at_ = 0;
};

schedules::Schedulers several(const json& list, optim::Optimizer& optimizer) {
  schedules::Schedulers out;
  for (const json& one : list) out.push_back(make_schedule(one.at(0), one.at(1), optimizer));
  return out;
}

}  // namespace

Tensor training_loss(const json& model, const Parameters& p, const Tensor& x, const Tensor& target) {
  const std::string kind = model.at("kind");
  if (kind == "vit") return cross_entropy_loss(vit(p, x), target);
  if (kind != "mlp") throw Error("there is no model '" + kind + "' in the training references");
  Tensor y = mlp(model, p, x);
  return model.at("loss") == "mse" ? mse_loss(y, target) : cross_entropy_loss(y, target);
}

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name, const json& args,
                                                 const std::vector<Tensor>& parameters) {
  Arguments a(name, args);
#define OPTIMIZER(Name) \
  if (name == #Name) return made<optim::Name>(a, optim::Name##Options(), parameters);
  OPTIMIZER(Adadelta)
  OPTIMIZER(Adafactor)
  OPTIMIZER(Adagrad)
  OPTIMIZER(Adam)
  OPTIMIZER(AdamW)
  OPTIMIZER(Adamax)
  OPTIMIZER(ASGD)
  OPTIMIZER(LBFGS)
  OPTIMIZER(Muon)
  OPTIMIZER(NAdam)
  OPTIMIZER(RAdam)
  OPTIMIZER(RMSprop)
  OPTIMIZER(Rprop)
#undef OPTIMIZER
  if (name == "SGD") return made<optim::SGD>(a, optim::SGDOptions(1e-3), parameters);
  throw Error("there is no optimizer '" + name + "'");
}

std::shared_ptr<schedules::LRScheduler> make_schedule(const std::string& name, const json& args,
                                                      optim::Optimizer& optimizer) {
  Arguments a(name, args);
  auto ready = [&](auto make) {
    a.finish();
    return std::shared_ptr<schedules::LRScheduler>(make());
  };
  if (name == "LambdaLR" || name == "MultiplicativeLR") {
    schedules::Lambda f = [text = a.get("lr_lambda", std::string())](int64_t epoch) {
      return Expression(text, static_cast<double>(epoch)).value();
    };
    return ready([&]() -> std::shared_ptr<schedules::LRScheduler> {
      if (name == "LambdaLR") return std::make_shared<schedules::LambdaLR>(optimizer, f);
      return std::make_shared<schedules::MultiplicativeLR>(optimizer, f);
    });
  }
  if (name == "StepLR") {
    auto size = static_cast<int64_t>(a.required("step_size"));
    double gamma = a.get("gamma", 0.1);
    return ready([&] { return std::make_shared<schedules::StepLR>(optimizer, size, gamma); });
  }
  if (name == "MultiStepLR") {
    auto milestones = a.get("milestones", std::vector<int64_t>());
    double gamma = a.get("gamma", 0.1);
    return ready([&] { return std::make_shared<schedules::MultiStepLR>(optimizer, milestones, gamma); });
  }
  if (name == "ConstantLR") {
    double factor = a.get("factor", 1.0 / 3);
    auto total = a.get("total_iters", int64_t{5});
    return ready([&] { return std::make_shared<schedules::ConstantLR>(optimizer, factor, total); });
  }
  if (name == "LinearLR") {
    double start = a.get("start_factor", 1.0 / 3), end = a.get("end_factor", 1.0);
    auto total = a.get("total_iters", int64_t{5});
    return ready([&] { return std::make_shared<schedules::LinearLR>(optimizer, start, end, total); });
  }
  if (name == "ExponentialLR") {
    double gamma = a.required("gamma");
    return ready([&] { return std::make_shared<schedules::ExponentialLR>(optimizer, gamma); });
  }
  if (name == "PolynomialLR") {
    auto total = a.get("total_iters", int64_t{5});
    double power = a.get("power", 1.0);
    return ready([&] { return std::make_shared<schedules::PolynomialLR>(optimizer, total, power); });
  }
  if (name == "CosineAnnealingLR") {
    auto most = static_cast<int64_t>(a.required("T_max"));
    double least = a.get("eta_min", 0.0);
    return ready([&] { return std::make_shared<schedules::CosineAnnealingLR>(optimizer, most, least); });
  }
  if (name == "CosineAnnealingWarmRestarts") {
    auto first = static_cast<int64_t>(a.required("T_0"));
    auto times = a.get("T_mult", int64_t{1});
    double least = a.get("eta_min", 0.0);
    return ready(
        [&] { return std::make_shared<schedules::CosineAnnealingWarmRestarts>(optimizer, first, times, least); });
  }
  if (name == "CyclicLR") {
    schedules::CyclicLROptions o(0, 0);
    a.read("base_lr", o.base_lr());
    a.read("max_lr", o.max_lr());
    a.read("step_size_up", o.step_size_up());
    a.read("step_size_down", o.step_size_down());
    a.read("mode", o.mode());
    a.read("gamma", o.gamma());
    a.read("cycle_momentum", o.cycle_momentum());
    a.read("base_momentum", o.base_momentum());
    a.read("max_momentum", o.max_momentum());
    return ready([&] { return std::make_shared<schedules::CyclicLR>(optimizer, o); });
  }
  if (name == "OneCycleLR") {
    schedules::OneCycleLROptions o(0, int64_t{0});
    a.read("max_lr", o.max_lr());
    a.read("total_steps", o.total_steps());
    a.read("pct_start", o.pct_start());
    a.read("anneal_strategy", o.anneal_strategy());
    a.read("cycle_momentum", o.cycle_momentum());
    a.read("base_momentum", o.base_momentum());
    a.read("max_momentum", o.max_momentum());
    a.read("div_factor", o.div_factor());
    a.read("final_div_factor", o.final_div_factor());
    a.read("three_phase", o.three_phase());
    return ready([&] { return std::make_shared<schedules::OneCycleLR>(optimizer, o); });
  }
  if (name == "SWALR") {
    double lr = a.required("swa_lr");
    auto epochs = a.get("anneal_epochs", int64_t{10});
    auto strategy = a.get("anneal_strategy", std::string("cos"));
    return ready([&] { return std::make_shared<schedules::SWALR>(optimizer, lr, epochs, strategy); });
  }
  if (name == "SequentialLR")
    return std::make_shared<schedules::SequentialLR>(optimizer, several(args.at("schedulers"), optimizer),
                                                     args.at("milestones").get<std::vector<int64_t>>());
  if (name == "ChainedScheduler")
    return std::make_shared<schedules::ChainedScheduler>(optimizer, several(args.at("schedulers"), optimizer));
  throw Error("there is no schedule '" + name + "'");
}

std::unique_ptr<schedules::ReduceLROnPlateau> make_plateau(const json& args, optim::Optimizer& optimizer) {
  using Plateau = schedules::ReduceLROnPlateau;
  Arguments a("ReduceLROnPlateau", args);
  auto mode = a.get("mode", std::string("min")), threshold_mode = a.get("threshold_mode", std::string("rel"));
  double factor = a.get("factor", 0.1), threshold = a.get("threshold", 1e-4), eps = a.get("eps", 1e-8);
  auto patience = a.get("patience", int64_t{10}), cooldown = a.get("cooldown", int64_t{0});
  auto min_lr = a.get("min_lr", std::vector<double>());
  a.finish();
  return std::make_unique<Plateau>(optimizer, mode == "min" ? Plateau::min : Plateau::max, factor, patience, threshold,
                                   threshold_mode == "rel" ? Plateau::rel : Plateau::abs, cooldown, min_lr, eps);
}

}  // namespace brasa::verify
