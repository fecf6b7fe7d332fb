#include "export/state.h"

#include <algorithm>
#include <set>

#include <brasa/nn/module.h>
#include <brasa/optim/optimizer.h>

#include "support/error.h"

namespace brasa::exporting {
namespace {

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

// The tensors of an optimizer's state for one parameter.
class Fields final : public optim::FieldVisitor {
 public:
  Fields(std::vector<StateTensor>& out, std::string prefix) : out_(out), prefix_(std::move(prefix)) {}
  void tensor(const std::string& name, Tensor& t, bool) override {
    if (t.defined()) out_.push_back({joined(prefix_, name), t});
  }
  void number(const std::string&, double&) override {}
  void number(const std::string&, std::optional<double>&) override {}

 private:
  std::vector<StateTensor>& out_;
  std::string prefix_;
};

void add_module(std::vector<StateTensor>& out, const std::string& prefix, const nn::Module& module) {
  for (const auto& item : module.named_parameters()) {
    out.push_back({joined(prefix, item.key()), item.value()});
    if (Tensor g = item.value().grad(); g.defined()) out.push_back({out.back().name + ".grad", g});
  }
  for (const auto& item : module.named_buffers()) out.push_back({joined(prefix, item.key()), item.value()});
}

std::vector<StateTensor> listed(const ExportOptions& options) {
  std::vector<StateTensor> out;
  for (const auto& [prefix, module] : options.modules) {
    BRASA_CHECK(module, "export: a module that was to give names is none");
    add_module(out, prefix, *module);
  }
  for (const auto& [prefix, optimizer] : options.optimizers) {
    BRASA_CHECK(optimizer, "export: an optimizer that was to give names is none");
    size_t index = 0;
    for (const optim::OptimizerParamGroup& group : optimizer->param_groups())
      for (const Tensor& p : group.params()) {
        Fields fields(out, joined(prefix, str("state.", index++)));
        if (auto at = optimizer->state().find(p.impl()); at != optimizer->state().end()) at->second->visit(fields);
      }
  }
  return out;
}

void check(const std::vector<StateTensor>& state) {
  std::set<std::string> names;
  for (const StateTensor& s : state) {
    bool plain = !s.name.empty() && s.name.size() <= 512;
    for (unsigned char c : s.name) plain = plain && c >= ' ' && c != '"' && c != '\\';
    BRASA_CHECK(plain, "export: '", s.name, "' is no name for a tensor of the state");
    BRASA_CHECK(names.insert(s.name).second, "export: two tensors of the state are named '", s.name, "'");
    BRASA_CHECK(s.tensor.is_contiguous(), "export: '", s.name, "', a tensor of the state, is not contiguous");
    BRASA_CHECK(s.tensor.dim() <= 8, "export: '", s.name, "', a tensor of the state, has ", s.tensor.dim(),
                " dimensions; at most 8 are known");
  }
}

}  // namespace

std::vector<NamedTensor> named_tensors(const ExportOptions& options, const nn::Module* program) {
  std::vector<StateTensor> all = listed(options);
  if (program) add_module(all, "", *program);
  auto parameter = [](const nn::Module& module, const Tensor& t) {
    std::vector<Tensor> list = module.parameters();
    return std::any_of(list.begin(), list.end(), [&](const Tensor& p) { return p.is_same(t); });
  };
  std::vector<NamedTensor> out;
  for (StateTensor& s : all) {
    bool is = program && parameter(*program, s.tensor);
    for (const auto& [prefix, module] : options.modules) is = is || parameter(*module, s.tensor);
    // In PyTorch a parameter has nothing below it.
    if (!is && s.name.ends_with(".grad")) s.name.replace(s.name.size() - 5, 1, "_");
    out.push_back({std::move(s.name), std::move(s.tensor), is});
  }
  return out;
}

std::vector<StateTensor> state_of(const std::deque<Captured>& captured, const Surroundings& surroundings,
                                  const ExportOptions& options, const nn::Module* program) {
  std::vector<StateTensor> out, own;
  std::vector<const Captured::Source*> read;
  for (const Captured& c : captured)
    for (const Captured::Source& s : c.sources)
      if (s.tensor.defined() && s.input < 0 && !s.unknown && s.tensor.numel() > 0) read.push_back(&s);
  auto same = [](const Tensor& a, const Tensor& b) {
    return a.data_ptr() == b.data_ptr() && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
  };
  auto known = [&](const Tensor& t) {
    return std::any_of(out.begin(), out.end(), [&](const StateTensor& s) { return same(s.tensor, t); });
  };
  auto add = [&](std::vector<StateTensor> named, bool only_written) {
    for (StateTensor& t : named)
      if (std::any_of(read.begin(), read.end(),
                      [&](const auto* s) { return (s->written || !only_written) && same(s->tensor, t.tensor); }))
        out.push_back(std::move(t));
  };
  add(listed(options), false);
  if (program) add_module(own, "", *program);
  add(std::move(own), true);
  int unnamed = 0;
  for (const auto* s : read)
    if (s->written && !known(s->tensor) && !s->tensor.is_same(surroundings.random()))
      out.push_back({str("state", unnamed++), s->tensor});
  for (const auto* s : read)
    if (s->tensor.is_same(surroundings.random()) && !known(s->tensor)) out.push_back({"rng_state", s->tensor});
  check(out);
  return out;
}

}  // namespace brasa::exporting
