#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <brasa/compile.h>

#include "capture/storage_table.h"
#include "capture/watch.h"
#include "support/mutex.h"
#include "tensor/autocast.h"
#include "tensor/autograd/meta.h"
#include "tensor/views.h"

// How calls of a pure function skip its body (CompileOptions::pure). Two calls in a row that do the same leave a Shortcut: what must be as
// it was, the run, and how results and gradients are made of it.
namespace brasa::capture {

using detail::Arguments;

/// The state of the thread and the program that a recording depends on.
struct Surroundings {
  bool grad = true, inference = false;
  DType dtype = DType::Float32;
  Device device{kCPU};
  runtime::Device* scope = nullptr;
  std::optional<eager::AutocastAs> autocast;  // if it is on
  uint64_t program = 0;                       // see program_state.h
  friend bool operator==(const Surroundings&, const Surroundings&) = default;
  /// Absent where bodies always run: in backward passes, checkpoints and anomaly mode.
  static std::optional<Surroundings> now();
};

/// A tensor of a call: how it is found.
struct Source {
  enum class From : uint8_t { None, Argument, ArgumentBase, Met, Key, Made } from = From::None;
  uint32_t index = 0;
  friend bool operator==(const Source&, const Source&) = default;
};

/// The gradient of a leaf before a call: none, this tensor, or some other whose elements nobody reads.
struct Gradient {
  bool matters = false, defined = false;
  const TensorImpl* exact = nullptr;
  Gradient() = default;
  explicit Gradient(const TensorImpl& leaf);
  bool holds(const TensorImpl& leaf) const;
};

/// A set of storages.
using Memories = StorageTable<bool>;

/// No two tensors share memory, nor one with the others.
bool have_memories_apart(std::span<const Tensor* const> tensors, const Memories& others);

/// What an argument's tensor must be like.
struct Likeness {
  explicit Likeness(const TensorImpl& t);
  bool fits(const TensorImpl& t) const;

  DType dtype;
  Sizes sizes, strides;
  int64_t offset;
  runtime::Device* device;
  uint8_t autograd;
  bool weak, inference, travels;
};

struct Shortcut {
  // What must hold.
  struct Argument {
    std::optional<Likeness> own, base;  // absent: undefined; no view
    Gradient gradient;
  };
  struct Met {
    Tensor tensor;
    const Storage* storage;
    int64_t offset;  // in bytes
    uint32_t moves;
    uint8_t autograd;
    Gradient gradient;
  };
  Surroundings surroundings;
  std::vector<Scalar> numbers;
  std::vector<Argument> arguments;
  std::vector<Met> met;
  Memories memory;  // of the met tensors

  // What runs.
  struct Draw {
    Generator stream;
    uint64_t count;
  };
  struct Output {
    size_t bytes;
    DType dtype;
    Layout at;
  };
  const Trace* trace = nullptr;
  runtime::Device* device = nullptr;
  std::shared_ptr<const compiler::Executable> executable;
  program::SymbolValues symbols;
  std::vector<Draw> draws;
  std::vector<Source> inputs;
  std::vector<Tensor> given;  // behind them
  std::vector<compiler::Operand>
      operands;  // of all; those of met tensors and of `given` are as in every call, but for the memory
  std::vector<Output> outputs;
  struct Write {
    Source input;
    uint32_t versions;  // by which it goes up
  };
  std::vector<Write> writes;

  // What comes of it.
  struct Made {
    // A view of something, or a tensor of an output.
    Source base;
    std::shared_ptr<eager::ViewLink> way;
    uint32_t output = 0;
    DType dtype = DType::Float32;
    Sizes sizes, strides;
    int64_t offset = 0;
    int root = -1;  // where its gradient goes
    uint32_t result = 0;
    bool spent = false;  // its history is used up
  };
  std::vector<Made> made;
  std::vector<Source> results;
  struct SetGradient {
    Source leaf, value;
  };
  std::vector<SetGradient> gradients;

  // With gradients asked for outside.
  struct Root {
    std::string name;
    std::vector<autograd::ResultMeta> results;
  };
  std::shared_ptr<const Halves> halves;
  Binding binding;
  std::vector<Delivery> deliveries;
  std::vector<GradientFlow::Slot> slots;
  std::vector<Root> roots;
  std::vector<Source> leaves;

  std::vector<uint64_t> sameness;  // equal for calls that do the same
  std::string missing;             // why it does not count yet

  bool is_called_with(const Surroundings& now, const Arguments& given_arguments) const;
  bool finds_all_as_it_was() const;
  std::vector<Tensor> run(const Arguments& given_arguments) const;
};

/// What autograd knows of a tensor, but its gradient: bits.
uint8_t autograd_state(const TensorImpl& t);

/// The shortcuts of a function.
class Shortcuts {
 public:
  bool run(const Arguments& arguments, std::vector<Tensor>& results);
  /// For calls of this kind, confirmed or not; null.
  std::shared_ptr<const Shortcut> find(const Surroundings& now, const Arguments& arguments) const;
  void add(std::shared_ptr<const Shortcut> shortcut, size_t limit, const Arguments& arguments);
  void refuse(const std::string& reason);
  int64_t skipped() const { return skipped_.load(std::memory_order_relaxed); }
  std::string reason() const;

 private:
  using List = std::vector<std::shared_ptr<const Shortcut>>;
  std::shared_ptr<const List> list() const;
  mutable Mutex mutex_;
  std::shared_ptr<const List> list_;
  std::string reason_;
  std::atomic<int64_t> skipped_{0};
};

/// Around a call whose body runs.
class Learning {
 public:
  Learning(Shortcuts& shortcuts, const Surroundings& now, const Arguments& arguments, size_t limit);
  Watch& watch() { return watch_; }
  void end(const std::vector<Tensor>& results);

 private:
  Shortcuts& shortcuts_;
  Surroundings now_;
  const Arguments& arguments_;
  size_t limit_;
  Watch watch_;
  std::shared_ptr<const Shortcut> last_;  // of the same kind
  struct Before {
    uint32_t version;
    Gradient gradient;
    const autograd::Node* history;
    Tensor tensor;
  };
  static Before before(const Tensor& t);
  std::vector<Before> arguments_before_, met_before_;
  std::vector<Generator::Key> streams_before_;  // by draw of the last call
  friend class Learner;
};

}  // namespace brasa::capture
