#include <brasa/import.h>

#include <brasa/autograd.h>

#include <algorithm>
#include <limits>
#include <map>

#include "import/archive.h"
#include "import/frame.h"
#include "support/error.h"

namespace brasa::io {

using import::InputSpec;
using import::OutputSpec;
using import::Value;

namespace {

// One level of the parameters' dotted names.
struct Scope : nn::Module {
  Tensor* find(const std::string& name) {
    Tensor* p = parameters_.find(name);
    return p ? p : buffers_.find(name);
  }
};

struct Place {
  std::shared_ptr<Scope> owner;  // null for what no module holds
  std::string name;
};

// "a.b.weight" as "weight" in the module "a.b" below `root`.
Place place_of(nn::Module& root, std::map<std::string, std::shared_ptr<Scope>>& scopes, const std::string& dotted) {
  size_t dot = dotted.rfind('.');
  if (dot == dotted.npos) return {nullptr, dotted};
  std::string path = dotted.substr(0, dot);
  auto [at, fresh] = scopes.try_emplace(path);
  if (fresh) {
    at->second = std::make_shared<Scope>();
    std::shared_ptr<Scope> scope = at->second;
    Place parent = place_of(root, scopes, path);
    (parent.owner ? static_cast<nn::Module&>(*parent.owner) : root).register_module(parent.name, scope);
    return {scope, dotted.substr(dot + 1)};
  }
  return {at->second, dotted.substr(dot + 1)};
}

}  // namespace

struct ExportedModuleImpl::Internals {
  import::Program program;
  import::Archive archive;
  std::map<std::string, Place> places;      // of parameters and persistent buffers
  std::map<std::string, Tensor> constants;  // and buffers that are not saved
};

namespace {

std::string text_of(const import::Size& size) {
  std::string out = size.factor == 1 ? size.symbol : str(size.factor, "*", size.symbol);
  if (size.offset != 0) out += str(size.offset > 0 ? " + " : " - ", std::abs(size.offset));
  return out;
}

std::string text_of(const InputSpec& spec, const std::vector<import::Range>& ranges) {
  if (!spec.meta) return spec.name + ": a number";
  std::string out = str(spec.name, ": ", name(spec.meta->dtype), "["), bounds;
  for (size_t d = 0; d < spec.meta->sizes.size(); ++d) {
    const import::Size& size = spec.meta->sizes[d];
    out += d ? ", " : "";
    out += size.number ? std::to_string(*size.number) : size.symbol.empty() ? "…" : text_of(size);
    for (const import::Range& r : ranges) {
      if (size.symbol.empty() || r.symbol != size.symbol) continue;
      bounds += str(", ", r.symbol, " from ", r.least);
      if (r.greatest) bounds += str(" to ", *r.greatest);
    }
  }
  return out + "]" + bounds;
}

// Checks the sizes of a user's inputs against the export's, and what stands for its symbols.
class InputCheck {
 public:
  explicit InputCheck(const import::Program& program) : program_(program) {}

  void operator()(const InputSpec& spec, const Tensor& t) {
    const import::TensorMeta& meta = *spec.meta;
    auto wrong = [&](const std::string& what) {
      fail(str(program_.source, ": input '", spec.name, "': ", what, "; it takes ", text_of(spec, program_.ranges)));
    };
    if (!t.defined()) wrong("got no tensor");
    if (t.scalar_type() != meta.dtype) wrong(str("got dtype ", name(t.scalar_type())));
    if (t.dim() != static_cast<int64_t>(meta.sizes.size())) wrong(str("got sizes ", t.sizes()));
    for (size_t d = 0; d < meta.sizes.size(); ++d) {
      const import::Size& size = meta.sizes[d];
      int64_t is = t.size(static_cast<int64_t>(d));
      if (size.number && *size.number != is) wrong(str("got sizes ", t.sizes()));
      if (size.symbol.empty()) continue;
      int64_t n = (is - size.offset) / size.factor;
      if (n * size.factor + size.offset != is) wrong(str("got sizes ", t.sizes()));
      auto [bound, fresh] = symbols_.emplace(size.symbol, n);
      if (bound->second != n) wrong(str("got sizes ", t.sizes(), ", where ", size.symbol, " is ", bound->second));
      for (const import::Range& r : program_.ranges)
        if (r.symbol == size.symbol && (n < r.least || (r.greatest && n > *r.greatest)))
          wrong(str("got sizes ", t.sizes()));
    }
  }

 private:
  const import::Program& program_;
  std::map<std::string, int64_t> symbols_;
};

Tensor tensor_of(const Value& v) {
  if (const auto* t = std::get_if<Tensor>(&v)) return *t;
  if (const auto* n = std::get_if<import::Number>(&v)) {
    DType dtype = n->value.type();
    return n->varies() ? n->element(dtype) : scalar_tensor(n->value, TensorOptions(dtype).device(Device(kCPU)));
  }
  return {};
}

void accumulate(const Tensor& into, const Tensor& gradient) {
  Tensor& grad = into.mutable_grad();
  grad = grad.defined() ? grad + gradient : gradient.detach();
}

}  // namespace

ExportedModuleImpl::ExportedModuleImpl(std::unique_ptr<Internals> internals)
    : Module("ExportedModule"), internals_(std::move(internals)) {
  Internals& in = *internals_;
  std::map<std::string, std::shared_ptr<Scope>> scopes;
  std::map<std::string, Tensor> values(in.archive.constants.begin(), in.archive.constants.end());
  std::map<std::string, bool> saved;  // whether a parameter, of what the program knows
  for (const InputSpec& spec : in.program.inputs) {
    if (spec.kind == InputSpec::Kind::Parameter) saved[spec.name] = true;
    if (spec.kind == InputSpec::Kind::Buffer && spec.persistent) saved[spec.name] = false;
  }
  std::map<const void*, Place> one;  // a tied parameter is one, under its first name
  for (const auto& [name, t] : in.archive.weights) {
    if (auto tied = one.find(t.impl()); tied != one.end()) {
      in.places.emplace(name, tied->second);
      continue;
    }
    Place place = place_of(*this, scopes, name);
    Module& owner = place.owner ? static_cast<Module&>(*place.owner) : *this;
    auto known = saved.find(name);
    bool parameter = known == saved.end() ? t.requires_grad() : known->second;
    Tensor value = in.program.device ? t.detach().to(*in.program.device).set_requires_grad(t.requires_grad()) : t;
    parameter ? owner.register_parameter(place.name, value, value.requires_grad())
              : owner.register_buffer(place.name, value.detach());
    in.places.emplace(name, place);
    if (parameter) one.emplace(t.impl(), place);
  }
  for (const InputSpec& spec : in.program.inputs) {
    using Kind = InputSpec::Kind;
    bool constant = spec.kind == Kind::Constant || (spec.kind == Kind::Buffer && !spec.persistent);
    bool kept = spec.kind == Kind::Parameter || (spec.kind == Kind::Buffer && spec.persistent);
    if (constant) {
      BRASA_CHECK(values.contains(spec.name), in.program.source, ": the constant '", spec.name,
                  "' is not in the archive");
      in.constants[spec.name] = in.program.device ? values[spec.name].to(*in.program.device) : values[spec.name];
    }
    if (kept)
      BRASA_CHECK(in.places.contains(spec.name), in.program.source, ": '", spec.name, "' is not in the archive");
  }
  in.archive.weights.clear();
  in.archive.constants.clear();
}
ExportedModuleImpl::~ExportedModuleImpl() = default;

std::vector<Tensor> ExportedModuleImpl::forward(const std::vector<Tensor>& inputs) {
  Internals& in = *internals_;
  const import::Program& program = in.program;
  auto held = [&](const std::string& name) -> Tensor& {
    auto constant = in.constants.find(name);
    if (constant != in.constants.end()) return constant->second;
    auto at = in.places.find(name);
    Tensor* t = nullptr;
    if (at != in.places.end()) {
      const auto& [owner, own] = at->second;  // another name than this one where parameters are tied
      t = owner ? owner->find(own) : parameters_.find(own) ? parameters_.find(own) : buffers_.find(own);
    }
    BRASA_CHECK(t, program.source, ": there is no '", name, "'");
    return *t;
  };
  size_t given = 0;
  std::map<std::string, Tensor> by_name;
  InputCheck check(program);
  auto next = [&](const InputSpec& spec) -> Tensor { return by_name[spec.name] = inputs[given++]; };
  // Numbers that the export took for fixed may be given or left out.
  auto fixed = std::count_if(program.inputs.begin(), program.inputs.end(),
                             [](const InputSpec& s) { return s.kind == InputSpec::Kind::Number && !s.none; });
  size_t takes = input_dtypes().size();
  bool with_fixed = fixed > 0 && inputs.size() == takes + static_cast<size_t>(fixed);
  BRASA_CHECK(with_fixed || inputs.size() == takes, program.source, ": got ", inputs.size(), " inputs, it takes ",
              this->inputs());
  auto check_fixed = [&](const InputSpec& spec, const Tensor& t) {
    BRASA_CHECK(import::number_of(t).equal(spec.number), program.source, ": input '", spec.name,
                "' was fixed by the export to another number");
  };
  std::vector<Value> values;
  for (const InputSpec& spec : program.inputs) {
    switch (spec.kind) {
      case InputSpec::Kind::User:
        if (Tensor t = next(spec); spec.meta) {
          check(spec, t);
          values.emplace_back(t);
        } else {
          values.emplace_back(import::number_of(t));
        }
        break;
      case InputSpec::Kind::Number:
        if (with_fixed && !spec.none) check_fixed(spec, next(spec));
        if (spec.none)
          values.emplace_back();
        else
          values.emplace_back(spec.number);
        break;
      default: values.emplace_back(held(spec.name));
    }
  }

  // The backward pass is in the graph.
  std::optional<NoGradGuard> no_grad;
  if (program.joint()) no_grad.emplace();
  std::vector<Value> results = import::Frame(program.graph, program).run(std::move(values));

  std::vector<Tensor> out;
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputSpec& spec = program.outputs[i];
    if (spec.kind == OutputSpec::Kind::User || spec.kind == OutputSpec::Kind::Loss)
      out.push_back(tensor_of(results[i]));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputSpec& spec = program.outputs[i];
    auto input = [&] {
      BRASA_CHECK(by_name.contains(spec.target), program.source, ": there is no input '", spec.target, "'");
      return by_name[spec.target];
    };
    switch (spec.kind) {
      case OutputSpec::Kind::User:
      case OutputSpec::Kind::Loss: break;
      case OutputSpec::Kind::BufferMutation:
      case OutputSpec::Kind::ParameterMutation: {
        NoGradGuard state;
        held(spec.target).copy_(tensor_of(results[i]).detach());
        break;
      }
      case OutputSpec::Kind::InputMutation: input().copy_(tensor_of(results[i])); break;
      case OutputSpec::Kind::ParameterGradient: accumulate(held(spec.target), tensor_of(results[i])); break;
      case OutputSpec::Kind::InputGradient: accumulate(input(), tensor_of(results[i])); break;
    }
  }
  return out;
}

void ExportedModuleImpl::write_pt2(const std::string& path) const {
  const Internals& in = *internals_;
  std::vector<import::Record> weights, constants;
  for (const auto& [name, place] : in.places) {
    const Module& owner = place.owner ? static_cast<const Module&>(*place.owner) : *this;
    OrderedDict<std::string, Tensor> parameters = owner.named_parameters(false), buffers = owner.named_buffers(false);
    const Tensor* parameter = parameters.find(place.name);
    const Tensor* t = parameter ? parameter : buffers.find(place.name);
    BRASA_CHECK(t, in.program.source, ": there is no '", name, "'");
    weights.push_back({name, *t, parameter != nullptr});
  }
  // A tied parameter keeps its name: that is the first one of the file.
  OrderedDict<std::string, Tensor> own = named_parameters();
  std::stable_partition(weights.begin(), weights.end(),
                        [&](const import::Record& r) { return !r.parameter || own.find(r.name); });
  for (const auto& [name, t] : in.constants) constants.push_back({name, t});
  import::write_archive(path, in.archive.program, weights, constants, in.archive.example_inputs);
}

void ExportedModuleImpl::to(Device device, bool non_blocking) {
  Module::to(device, non_blocking);
  internals_->program.device = device;
  for (auto& [name, t] : internals_->constants) t = t.to(device);
}
void ExportedModuleImpl::to(Device device, DType dtype, bool non_blocking) {
  to(device, non_blocking);
  Module::to(dtype, non_blocking);
}

std::vector<std::string> ExportedModuleImpl::inputs() const {
  std::vector<std::string> out;
  for (const InputSpec& spec : internals_->program.inputs)
    if (spec.kind == InputSpec::Kind::User) out.push_back(text_of(spec, internals_->program.ranges));
  return out;
}
std::vector<ProgramInput> ExportedModuleImpl::input_types() const {
  std::vector<ProgramInput> out;
  for (const InputSpec& spec : internals_->program.inputs) {
    if (spec.kind != InputSpec::Kind::User) continue;
    ProgramInput in{spec.name, spec.meta ? std::optional(spec.meta->dtype) : std::nullopt};
    for (const import::Size& s : spec.meta ? spec.meta->sizes : std::vector<import::Size>()) {
      if (s.number) {
        in.sizes.push_back({*s.number, *s.number, *s.number});
        continue;
      }
      constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
      ProgramInput::Size size{0, 0, kMost, s.symbol, s.factor, s.offset};
      for (const import::Range& r : internals_->program.ranges)
        if (!s.symbol.empty() && r.symbol == s.symbol) {
          auto of = [&](int64_t n) { return s.factor * std::min(n, kMost / s.factor) + s.offset; };
          size.least = std::max<int64_t>(of(std::max<int64_t>(r.least, 0)), 0);
          size.greatest = std::max(size.least, of(r.greatest.value_or(kMost)));
        }
      size.example = std::clamp(s.example.value_or(2), size.least, size.greatest);
      in.sizes.push_back(size);
    }
    out.push_back(std::move(in));
  }
  return out;
}
std::vector<std::optional<DType>> ExportedModuleImpl::input_dtypes() const {
  std::vector<std::optional<DType>> out;
  for (const InputSpec& spec : internals_->program.inputs)
    if (spec.kind == InputSpec::Kind::User) out.push_back(spec.meta ? std::optional(spec.meta->dtype) : std::nullopt);
  return out;
}

ExportedModule load_pt2(const std::string& path, const Pt2Options& options) {
  auto internals = std::make_unique<ExportedModuleImpl::Internals>();
  internals->archive = import::read_archive(path);
  internals->program = import::parse_program(internals->archive.program, path, options.device, /*resolve=*/true);
  return std::make_shared<ExportedModuleImpl>(std::move(internals));
}

namespace {

void count(const import::Graph& graph, std::map<std::string, int>& calls, std::map<std::string, int>& missing) {
  for (const import::Node& node : graph.nodes) {
    ++calls[node.target];
    if (!node.run) ++missing[node.target];
    for (const import::Argument& a : node.arguments)
      if (const auto* g = std::get_if<std::shared_ptr<const import::Graph>>(&a.value)) count(**g, calls, missing);
  }
}

}  // namespace

std::string describe_pt2(const std::string& path) {
  import::Archive archive = import::read_archive(path);
  import::Program program = import::parse_program(archive.program, path, std::nullopt, /*resolve=*/false);
  std::string out = str("exported program, by PyTorch ", program.torch_version, "\ninputs:\n");
  for (const InputSpec& spec : program.inputs)
    if (spec.kind == InputSpec::Kind::User) out += str("  ", text_of(spec, program.ranges), "\n");
  size_t outputs = 0;
  std::string changes;
  int64_t parameters = 0;
  for (const OutputSpec& spec : program.outputs) {
    outputs += spec.kind == OutputSpec::Kind::User || spec.kind == OutputSpec::Kind::Loss;
    if (spec.kind >= OutputSpec::Kind::BufferMutation && spec.kind <= OutputSpec::Kind::InputMutation)
      changes += str("  ", spec.target, "\n");
  }
  for (const auto& [name, t] : archive.weights)
    if (t.requires_grad()) parameters += t.numel();
  out += str("outputs: ", outputs, program.joint() ? ", and gradients" : "", "\n");
  if (!changes.empty()) out += "changes:\n" + changes;
  out += str("tensors: ", archive.weights.size(), " and ", archive.constants.size(),
             " constants; parameters that need gradients: ", parameters, " numbers\n");
  std::map<std::string, int> calls, missing;
  count(program.graph, calls, missing);
  out += "operators:\n";
  for (const auto& [target, n] : calls)
    out += str("  ", n, " × ", target, missing.contains(target) ? "  (Brasa has it not)" : "", "\n");
  return out;
}

}  // namespace brasa::io
