#include <brasa/optim/optimizer.h>
#include <brasa/warning.h>

#include <algorithm>
#include <map>
#include <set>
#include <typeinfo>

#include <brasa/autograd.h>
#include <brasa/compile.h>

#include "optim/numbers.h"
#include "support/error.h"
#include "support/lazy.h"
#include "tensor/program_state.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"

namespace brasa::optim {
namespace {

// Updates that a device runs behind the host are a few launches for all parameters as a compiled graph, and several for each as they are.
bool is_on_queued_device(const std::vector<OptimizerParamGroup>& groups) {
  for (const OptimizerParamGroup& group : groups)
    for (const Tensor& p : group.params())
      if (p.grad().defined()) return !impl_of(p)->device().on_host();
  return false;
}

void warn_old(const char* name) {
  Warning::warn({"Optimizer", __FILE__, __LINE__},
                std::string("Optimizer::") + name + " will be removed; use param_groups() and add_param_group().",
                false);
}

class FieldWriter final : public FieldVisitor {
 public:
  explicit FieldWriter(serialize::OutputArchive& archive) : archive_(archive) {}
  void tensor(const std::string& name, Tensor& t, bool) override { archive_.write(name, t); }
  void number(const std::string& name, double& x) override { write_number(archive_, name, x); }
  void number(const std::string& name, std::optional<double>& x) override {
    if (x) write_number(archive_, name, *x);
  }

 private:
  serialize::OutputArchive& archive_;
};

class FieldReader final : public FieldVisitor {
 public:
  explicit FieldReader(serialize::InputArchive& archive) : archive_(archive) {}
  void tensor(const std::string& name, Tensor& t, bool required) override {
    required ? archive_.read(name, t) : static_cast<void>(archive_.try_read(name, t));
  }
  void number(const std::string& name, double& x) override { x = read_number(archive_, name); }
  void number(const std::string& name, std::optional<double>& x) override {
    Tensor t;
    x = archive_.try_read(name, t) ? std::optional<double>(t.item<double>()) : std::nullopt;
  }

 private:
  serialize::InputArchive& archive_;
};

// A writer changes nothing.
template <class T>
bool write_fields(const T& from, serialize::OutputArchive& archive) {
  FieldWriter f(archive);
  return const_cast<T&>(from).visit(f);
}
template <class T>
bool read_fields(T& to, serialize::InputArchive& archive) {
  FieldReader f(archive);
  return to.visit(f);
}

}  // namespace

FieldVisitor::~FieldVisitor() = default;
void FieldVisitor::operator()(const std::string& name, std::vector<Tensor>& list) {
  auto size = static_cast<double>(list.size());
  number(name + ".size", size);
  list.resize(static_cast<size_t>(size));
  for (size_t i = 0; i < list.size(); ++i) tensor(name + "." + std::to_string(i), list[i], true);
}

OptimizerParamState::~OptimizerParamState() = default;
OptimizerOptions::~OptimizerOptions() = default;

std::unique_ptr<OptimizerParamState> OptimizerParamState::clone() const { fail("this optimizer state has no clone()"); }
bool OptimizerParamState::visit(FieldVisitor&) { return false; }
void OptimizerParamState::serialize(serialize::OutputArchive& archive) const {
  BRASA_CHECK(write_fields(*this, archive), "this optimizer state cannot be saved");
}
void OptimizerParamState::serialize(serialize::InputArchive& archive) {
  BRASA_CHECK(read_fields(*this, archive), "this optimizer state cannot be loaded");
}
void CountedParamState::set_step(int64_t count) { steps_ = scalar_tensor(count, kFloat32); }
std::unique_ptr<OptimizerOptions> OptimizerOptions::clone() const { fail("these optimizer options have no clone()"); }
bool OptimizerOptions::visit(FieldVisitor&) { return false; }
void OptimizerOptions::serialize(serialize::OutputArchive& archive) const {
  BRASA_CHECK(write_fields(*this, archive), "these optimizer options cannot be saved");
}
void OptimizerOptions::serialize(serialize::InputArchive& archive) {
  BRASA_CHECK(read_fields(*this, archive), "these optimizer options cannot be loaded");
}
double OptimizerOptions::get_lr() const { fail("these optimizer options have no learning rate"); }
void OptimizerOptions::set_lr(double) { fail("these optimizer options have no learning rate"); }
void OptimizerOptions::set_lr(const Tensor&) {
  fail("this optimizer takes its learning rate as a number, not as a tensor");
}
Tensor OptimizerOptions::lr_tensor() const { return {}; }
void detail::rate_changed() { program_state.fetch_add(1, std::memory_order_relaxed); }
Tensor detail::checked_rate(const Tensor& lr) {
  BRASA_CHECK(lr.defined() && lr.dim() == 0 && is_floating(lr.scalar_type()),
              "the learning rate must be a floating tensor without dimensions");
  return lr.detach();
}

std::unique_ptr<OptimizerOptions> OptimizerOptions::fresh() const { return nullptr; }
std::optional<double> OptimizerOptions::get_momentum() const { return std::nullopt; }
void OptimizerOptions::set_momentum(double) { fail("these optimizer options have neither a momentum nor betas"); }

OptimizerParamGroup::OptimizerParamGroup(const OptimizerParamGroup& o)
    : params_(o.params_), initial_lr_(o.initial_lr_), options_(o.options_ ? o.options_->clone() : nullptr) {}
OptimizerParamGroup& OptimizerParamGroup::operator=(const OptimizerParamGroup& o) {
  params_ = o.params_;
  initial_lr_ = o.initial_lr_;
  options_ = o.options_ ? o.options_->clone() : nullptr;
  return *this;
}
OptimizerOptions& OptimizerParamGroup::options() {
  BRASA_CHECK(options_, "this parameter group has no options: it is not in an optimizer yet");
  return *options_;
}
const OptimizerOptions& OptimizerParamGroup::options() const {
  return const_cast<OptimizerParamGroup*>(this)->options();
}

namespace {
struct NoOptions : OptimizerCloneableOptions<NoOptions> {};
}  // namespace

namespace {

using Numbers = std::map<std::string, std::optional<double>>;

// Calls f(name, number) for each number of options, which it may replace.
template <class F>
class NumberVisitor final : public FieldVisitor {
 public:
  explicit NumberVisitor(F f) : f_(std::move(f)) {}
  void tensor(const std::string&, Tensor&, bool) override {}
  void number(const std::string& name, double& x) override {
    std::optional<double> number = x;
    f_(name, number);
    x = *number;
  }
  void number(const std::string& name, std::optional<double>& x) override { f_(name, x); }

 private:
  F f_;
};

std::optional<Numbers> numbers_of(const OptimizerOptions& options) {
  Numbers found;
  NumberVisitor reader([&](const std::string& name, const std::optional<double>& x) { found[name] = x; });
  if (!const_cast<OptimizerOptions&>(options).visit(reader)) return std::nullopt;
  return found;
}

// What a user sets at once: the parts of a tuple are numbered.
std::string option_of(const std::string& field) { return field.substr(0, field.find_last_not_of("0123456789") + 1); }

// The options of a group, with what it leaves at its type's defaults taken from the optimizer's.
std::unique_ptr<OptimizerOptions> merged(const OptimizerOptions& own, const OptimizerOptions& optimizers) {
  std::unique_ptr<OptimizerOptions> unset = own.fresh(), result = own.clone();
  if (!unset || typeid(own) != typeid(optimizers)) return result;
  auto mine = numbers_of(own), theirs = numbers_of(optimizers), usual = numbers_of(*unset);
  if (!mine || !theirs || !usual) return result;
  std::set<std::string> set;
  for (const auto& [name, number] : *mine)
    if (number != usual->at(name)) set.insert(option_of(name));
  NumberVisitor writer([&](const std::string& name, std::optional<double>& x) {
    if (!set.count(option_of(name))) x = theirs->at(name);
  });
  result->visit(writer);
  if (Tensor rate = optimizers.lr_tensor(); rate.defined() && !set.count("lr")) result->set_lr(rate);
  return result;
}

}  // namespace

Optimizer::Optimizer(const std::vector<OptimizerParamGroup>& param_groups, std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  for (const OptimizerParamGroup& group : param_groups) add_param_group(group);
}
Optimizer::Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  add_param_group(OptimizerParamGroup(std::move(parameters)));
}
Optimizer::Optimizer(std::vector<Tensor> parameters) : defaults_(std::make_unique<NoOptions>()) {
  add_param_group(OptimizerParamGroup(std::move(parameters)));
}
Optimizer::~Optimizer() = default;

void Optimizer::update(OptimizerParamGroup&) { fail("this optimizer overrides neither step() nor update()"); }
std::unique_ptr<OptimizerParamState> Optimizer::new_state() const { fail("this optimizer's state cannot be loaded"); }

std::vector<Tensor>& Optimizer::parameters() {
  warn_old("parameters()");
  BRASA_CHECK(!param_groups_.empty(), "this optimizer has no parameter groups");
  return param_groups_[0].params();
}
const std::vector<Tensor>& Optimizer::parameters() const { return const_cast<Optimizer*>(this)->parameters(); }
void Optimizer::add_parameters(const std::vector<Tensor>& added) {
  warn_old("add_parameters()");
  std::vector<Tensor>& all = param_groups_.at(0).params();
  all.insert(all.end(), added.begin(), added.end());
}

void Optimizer::add_param_group(const OptimizerParamGroup& group) {
  for (const Tensor& p : group.params()) {
    BRASA_CHECK(p.defined(), "an optimizer cannot train an undefined tensor");
    BRASA_CHECK(p.is_leaf(), "can't optimize a non-leaf Tensor");
    int found = 0;
    for (const Tensor& q : group.params()) found += q.is_same(p);
    for (const OptimizerParamGroup& other : param_groups_)
      for (const Tensor& q : other.params()) found += q.is_same(p);
    BRASA_CHECK(found == 1, "some parameters appear in more than one parameter group: one of sizes ", p.sizes());
  }
  OptimizerParamGroup added = group;
  added.set_options(added.has_options() ? merged(added.options(), *defaults_) : defaults_->clone());
  param_groups_.push_back(std::move(added));
}

Tensor Optimizer::step(LossClosure closure) {
  Tensor loss;
  if (closure) {
    AutoGradMode enable(true);
    loss = closure();
  }
  NoGradGuard no_grad;
  static constexpr auto update_all = [](Optimizer* o) {
    for (OptimizerParamGroup& group : o->param_groups_) o->update(group);
  };
  // The first step makes the state.
  if (state_.empty() || Recorder::current() || !is_on_queued_device(param_groups_)) {
    update_all(this);
  } else {
    constexpr int kOptimizers = 64;
    using Compiled = decltype(compile(update_all, {}));
    static constinit Lazy<Compiled> compiled([] { return compile(update_all, {.recompile_limit = kOptimizers}); });
    (*compiled)(this);
  }
  return loss;
}

void Optimizer::zero_grad(bool set_to_none) {
  for (OptimizerParamGroup& group : param_groups_)
    for (Tensor& p : group.params()) {
      if (!p.grad().defined()) continue;
      if (set_to_none) {
        p.mutable_grad().reset();
      } else {
        p.mutable_grad().detach_();
        p.mutable_grad().zero_();
      }
    }
}

size_t Optimizer::size() const noexcept {
  warn_old("size()");
  size_t n = 0;
  for (const OptimizerParamGroup& group : param_groups_) n += group.params().size();
  return n;
}

OptimizerParamState* Optimizer::find_state(const Tensor& parameter) const {
  auto it = state_.find(parameter.impl());
  return it == state_.end() ? nullptr : it->second.get();
}

void Optimizer::save(serialize::OutputArchive& archive) const {
  size_t index = 0;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    serialize::OutputArchive options;
    param_groups_[g].options().serialize(options);
    write_number(options, "params", static_cast<double>(param_groups_[g].params().size()));
    archive.write("param_groups." + std::to_string(g), options);
    for (const Tensor& p : param_groups_[g].params()) {
      if (OptimizerParamState* state = find_state(p)) {
        serialize::OutputArchive nested;
        state->serialize(nested);
        archive.write("state." + std::to_string(index), nested);
      }
      ++index;
    }
  }
}

void Optimizer::load(serialize::InputArchive& archive) {
  size_t index = 0;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    serialize::InputArchive options;
    archive.read("param_groups." + std::to_string(g), options);
    if (Tensor count; options.try_read("params", count))
      BRASA_CHECK(count.item<int64_t>() == static_cast<int64_t>(param_groups_[g].params().size()), archive.source(),
                  ": parameter group ", g, " has ", count.item<int64_t>(), " parameters, the optimizer's has ",
                  param_groups_[g].params().size());
    param_groups_[g].options().serialize(options);
    for (const Tensor& p : param_groups_[g].params()) {
      serialize::InputArchive nested;
      if (archive.try_read("state." + std::to_string(index++), nested)) {
        auto state = new_state();
        state->serialize(nested);
        state_[p.impl()] = std::move(state);
      } else {
        state_.erase(p.impl());
      }
    }
  }
  share_counts();
}

namespace {

template <class T>
bool saved_alike(const T& a, const T& b) {
  serialize::OutputArchive left, right;
  a.serialize(left);
  b.serialize(right);
  const auto &x = left.contents().tensors, &y = right.contents().tensors;
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& p, const auto& q) {
    return p.first == q.first && p.second.scalar_type() == q.second.scalar_type() && p.second.equal(q.second);
  });
}

}  // namespace

bool operator==(const OptimizerOptions& a, const OptimizerOptions& b) { return saved_alike(a, b); }
bool operator==(const OptimizerParamState& a, const OptimizerParamState& b) { return saved_alike(a, b); }

serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Optimizer& optimizer) {
  optimizer.save(archive);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer) {
  optimizer.load(archive);
  return archive;
}

}  // namespace brasa::optim
