#include "capture/minify_runs.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <utility>

#include <brasa/autograd.h>
#include <brasa/minify.h>

#include "support/error.h"
#include "support/log.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"
#include "transforms/derived.h"

namespace brasa::capture {
namespace {

// What an operand holds at present, in memory of its own that lies as it does.
Tensor copy_of(const compiler::Operand& o, runtime::Device& device) {
  StorageRef storage(Storage::borrow(o.data, static_cast<size_t>(size_of(o.dtype)), nullptr, device));
  Tensor whole = make_tensor(std::move(storage), o.dtype, Sizes{extent_of(o.sizes, o.strides)}, Sizes{1}, 0);
  return whole.clone().as_strided(Sizes(o.sizes).vec(), Sizes(o.strides).vec());
}

void write_down(const std::string& text, const GraphCheck& check, const std::string& folder) try {
  static std::atomic<int> last{0};
  std::string failure = check_graph(text, check);
  if (failure.empty()) return;
  std::filesystem::create_directories(folder);
  std::string path;
  do path = str(folder, "/graph_", ++last);
  while (std::filesystem::exists(path + ".txt"));
  std::ofstream(path + ".txt") << text;
  Minified m = minify(text, check);
  std::ofstream(path + ".cpp") << reproducer(m);
  log_line("minify", str(failure, "; ", m.operators, " operators of it are in ", path, ".cpp"));
} catch (const std::exception& e) {
  // The program goes on as it would without.
  log_line("minify", e.what());
}

class Checked final : public compiler::Executable {
 public:
  Checked(const ir::Graph& graph, const ir::Facts& facts, std::shared_ptr<compiler::Executable> runs,
          std::string backend, std::string folder, runtime::Device& device)
      : Executable(graph),
        runs_(std::move(runs)),
        backend_(std::move(backend)),
        folder_(std::move(folder)),
        text_(transforms::text_of(graph, facts)),
        device_(device) {
    for (const ir::Input& in : graph.inputs()) by_value_.push_back(in.by_value);
    for (const ir::Node* n : graph.nodes())
      for (const ir::Type& t : n->types) note(t.shape);
    for (const ir::Input& in : graph.inputs()) note(in.strides);
  }

  void run(const int64_t* symbols, std::span<const compiler::Operand> inputs,
           std::span<const compiler::Operand> outputs) const override {
    if (!done_.exchange(true)) {
      Recorder::Scope alone(nullptr);
      NoGradGuard guard;
      GraphCheck check{.backend = backend_};
      check.symbols.assign(symbols, symbols + symbols_);
      for (size_t i = 0; i < inputs.size(); ++i)
        check.inputs.push_back(copy_of(inputs[i], by_value_[i] ? runtime::host() : device_));
      write_down(text_, check, folder_);
    }
    runs_->run(symbols, inputs, outputs);
  }

 private:
  void note(const std::vector<ir::Expr>& sizes) {
    std::vector<ir::Expr> found;
    for (ir::Expr e : sizes) ir::collect_symbols(e, found);
    for (ir::Expr s : found) symbols_ = std::max<size_t>(symbols_, s->id + 1);
  }

  std::shared_ptr<compiler::Executable> runs_;
  std::string backend_, folder_, text_;
  runtime::Device& device_;
  std::vector<bool> by_value_;
  size_t symbols_ = 0;
  mutable std::atomic<bool> done_{false};
};

}  // namespace

Backend minifying(Backend backend, const std::string& name, const std::string& folder) {
  return [=](const ir::Graph& graph, ir::Facts& facts, const CompileOptions& options, runtime::Device& device,
             const Lasting& lasting) -> std::shared_ptr<compiler::Executable> {
    std::shared_ptr<compiler::Executable> runs;
    try {
      runs = backend(graph, facts, options, device, lasting);
    } catch (const std::exception&) {
      // Where sizes are symbols the graph comes again with constant ones.
      bool constant = true;
      for (const ir::Input& in : graph.inputs())
        for (ir::Expr e : ir::type_of(in.value).shape) constant = constant && e.is_constant();
      if (constant) write_down(transforms::text_of(graph, facts), {.backend = name}, folder);
      throw;
    }
    return std::make_shared<Checked>(graph, facts, std::move(runs), name, folder, device);
  };
}

}  // namespace brasa::capture
