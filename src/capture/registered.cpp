// Backends that programs register: they see a graph through a handle, and run on tensors.
#include <brasa/autograd.h>
#include <brasa/backend.h>

#include "capture/backend.h"
#include "ir/copy.h"
#include "program/variants.h"
#include "support/error.h"
#include "tensor/execute.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"
#include "transforms/derived.h"

namespace brasa {

struct CapturedGraph::Impl {
  const ir::Graph& graph;
  ir::Facts& facts;
  const CompileOptions& options;
  runtime::Device& device;
};

namespace {

// The same values, none of them written into an input.
std::unique_ptr<ir::Graph> without_writes(const ir::Graph& graph) {
  auto out = std::make_unique<ir::Graph>(graph.level());
  ir::ValueMap map;
  ir::copy_inputs(*out, graph, map);
  ir::copy_live_nodes(*out, graph, map);
  for (const ir::Output& o : graph.outputs()) out->add_output(map(o.value));
  return out;
}

// A graph function behind the compiler's interface.
class Called final : public compiler::Executable {
 public:
  Called(std::string name, const ir::Graph& graph, GraphFunction function, runtime::Device& device)
      : Executable(graph), name_(std::move(name)), function_(std::move(function)), device_(device) {
    for (const ir::Input& in : graph.inputs()) {
      weak_.push_back(ir::type_of(in.value).weak);
      by_value_.push_back(in.by_value);
    }
    for (const ir::Output& o : graph.outputs()) into_.push_back(o.into);
  }

  void run(const int64_t*, std::span<const compiler::Operand> inputs,
           std::span<const compiler::Operand> outputs) const override {
    Recorder::Scope alone(nullptr);
    NoGradGuard guard;
    std::vector<Tensor> given;
    for (size_t i = 0; i < inputs.size(); ++i) {
      given.push_back(tensor_at(inputs[i], by_value_[i] ? runtime::host() : device_));
      if (by_value_[i] && !inputs[i].sizes.empty()) impl_of(given.back())->storage->set_travels();
      impl_of(given.back())->weak = weak_[i];
    }
    std::vector<Tensor> results = function_(given);
    BRASA_CHECK(results.size() == into_.size(), "backend '", name_, "': a graph with ", into_.size(), " outputs gave ",
                results.size(), " tensors");
    // An output may be an input that another one is written into.
    for (Tensor& t : results) t = t.clone();
    size_t fresh = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      Tensor to = tensor_at(into_[i] >= 0 ? inputs[into_[i]] : outputs[fresh++], device_);
      BRASA_CHECK(results[i].sizes() == to.sizes() && results[i].scalar_type() == to.scalar_type(), "backend '", name_,
                  "': output ", i, " is ", results[i], ", expected ", to);
      to.copy_(results[i]);
    }
  }

 private:
  static Tensor tensor_at(const compiler::Operand& at, runtime::Device& device) {
    StorageRef storage(Storage::borrow(at.data, static_cast<size_t>(size_of(at.dtype)), nullptr, device));
    return make_tensor(std::move(storage), at.dtype, Sizes(at.sizes), Sizes(at.strides), 0);
  }

  std::string name_;
  GraphFunction function_;
  runtime::Device& device_;
  std::vector<bool> weak_, by_value_;
  std::vector<int> into_;
};

}  // namespace

std::string CapturedGraph::text() const { return transforms::text_of(impl_.graph, impl_.facts); }

std::vector<std::string> CapturedGraph::operators() const {
  std::vector<std::string> out;
  for (const ir::Node* n : live_nodes(impl_.graph))
    if (n->op != ir::input_op()) out.push_back(n->op->name());
  return out;
}

size_t CapturedGraph::input_count() const { return impl_.graph.inputs().size(); }
size_t CapturedGraph::output_count() const { return impl_.graph.outputs().size(); }

bool CapturedGraph::symbolic() const {
  for (const ir::Input& in : impl_.graph.inputs())
    for (ir::Expr e : ir::type_of(in.value).shape)
      if (!e.is_constant()) return true;
  return false;
}

const CompileOptions& CapturedGraph::options() const { return impl_.options; }

GraphFunction CapturedGraph::compile(const std::string& backend) const {
  std::unique_ptr<ir::Graph> graph = without_writes(impl_.graph);
  auto executable = capture::find_backend(backend)(*graph, impl_.facts, impl_.options, impl_.device, {});
  auto variant = std::make_shared<program::Variant>(
      program::Variant{program::Program(std::move(graph), impl_.device), std::move(executable)});
  return [variant](const std::vector<Tensor>& given) {
    std::vector<compiler::Operand> inputs;
    for (const Tensor& t : given) inputs.push_back(eager::operand_of(t));
    return eager::run(*variant, inputs);
  };
}

namespace capture {

Backend adapted(const std::string& name, brasa::Backend backend) {
  return [name, backend = std::move(backend)](const ir::Graph& graph, ir::Facts& facts, const CompileOptions& options,
                                              runtime::Device& device,
                                              const Lasting&) -> std::shared_ptr<compiler::Executable> {
    CapturedGraph::Impl impl{graph, facts, options, device};
    GraphFunction function;
    {
      Recorder::Scope alone(nullptr);  // what it computes is no part of the function that it compiles
      function = backend(CapturedGraph(impl));
    }
    BRASA_CHECK(function, "backend '", name, "' gave no function");
    return std::make_shared<Called>(name, graph, std::move(function), device);
  };
}

}  // namespace capture

void register_backend(const std::string& name, Backend backend) {
  BRASA_CHECK(!capture::is_built_in(name), "register_backend: '", name, "' is one of Brasa's own backends");
  BRASA_CHECK(backend, "register_backend: '", name, "' has no function");
  capture::register_backend(name, capture::adapted(name, std::move(backend)));
}

}  // namespace brasa
