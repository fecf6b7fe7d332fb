#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/names.h"
#include "ir/facts.h"
#include "ops/table.h"
#include "runtime/device.h"

// Primitives that functions of libraries compute, whole tensors to whole tensors.
namespace brasa::compiler {

/// An operand or result in contiguous memory of the host.
struct LibraryTensor {
  void* data = nullptr;
  DType dtype = DType::Float32;
  std::span<const int64_t> sizes;
};

struct LibraryCall {
  /// The primitive's arguments; operands stand in `inputs` instead, in order, lists one after the other.
  const ir::Args& args;
  std::span<const LibraryTensor> inputs, outputs;
  const int64_t* symbols;

  /// An int or SymInt argument.
  int64_t integer(size_t arg) const;
};

struct CompilerOptions;
struct Group;
struct Report;

/// What a call of a library computes besides the node that it is found by.
struct Covered {
  std::vector<const ir::Node*> inside;  // only the call reads their results
  std::vector<ir::Value> operands;      // in memory, besides those that `place` puts there for a node inside
  /// Of those inside: others read them, too, and the call writes them besides. None of them leads to the operands of any other node of the call.
  std::vector<const ir::Node*> results = {};
  /// Of those inside: elements that others read, too, who compute them again, of the results.
  std::vector<const ir::Node*> repeated = {};
};

/// A function of a library that works on a device: given to a stream, and not waited for.
class DeviceCall {
 public:
  virtual ~DeviceCall();
  /// `tensors` are the memory of the group's inputs, then of its outputs.
  virtual void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
                   const int64_t* symbols) const = 0;
  /// From now on it computes so many, whose tensors lie so many bytes behind those of the one before. Of implementations that repeat.
  virtual void repeat(int64_t count, std::span<const int64_t> apart);
  /// Of what it is compiled of; null for a library's own code.
  virtual const Report* report() const { return nullptr; }
  double flops(const int64_t* symbols) const { return 2 * products(symbols); }

 protected:
  /// Multiplications and additions of a run, those of kernels left out.
  virtual double products(const int64_t* /*symbols*/) const { return 0; }
};

/// One way to compute a primitive: `run` on the host, or `prepare` for where the operands are.
struct Implementation {
  std::string_view library;    // as runtime::Properties::libraries has it
  std::string_view name;       // in reports
  std::string_view primitive;  // "prim::sort"
  /// Which calls it takes, by dtypes, shapes and arguments; null: all.
  bool (*supports)(const ir::Node& n) = nullptr;
  /// Of one that computes more than a node: what ends in this one; nothing where it takes no such call. Null: the node alone.
  std::optional<Covered> (*covers)(const ir::Graph& graph, const ir::Node& n) = nullptr;
  /// May run on several threads at once, on different memory. An error of the user's is a brasa::Error.
  void (*run)(const LibraryCall& call) = nullptr;
  /// Of a group with this primitive and the views through which it sees its operands: these are placed by `place`, or contiguous. What the
  /// call assumes of sizes goes to `facts`.
  std::unique_ptr<DeviceCall> (*prepare)(const Group& group, const CompilerOptions& options,
                                         ir::Facts& facts) = nullptr;
  /// Puts values in the place of the operands that the library can read where they are; what must be memory goes to `in_memory`.
  void (*place)(ir::Args& args, const ir::Graph& graph, std::unordered_set<ir::Value>& in_memory) = nullptr;
  /// Whether `n` can read its operands from these values, where all of the operands' ways end: with these strides, or contiguous.
  bool (*reads)(const ir::Node& n, const std::unordered_map<const ir::Node*, std::vector<ir::Expr>>& stored) = nullptr;
  /// Whether one call computes several groups of a single matrix each (DeviceCall::repeat).
  bool repeats = false;
  /// Of one that covers sums besides what is summed up: the first step of a sum over these dimensions, as it takes it. Null: none.
  ir::Value (*first_sums)(ir::Value x, const std::vector<int64_t>& dims) = nullptr;
};

/// All of them; their order is the build's.
std::span<const Implementation* const> implementations();

/// What some libraries compute, in the order in which they are tried: by library, then as table.cpp lists them.
class Libraries {
 public:
  /// brasa::InternalError for one that the table has not.
  explicit Libraries(std::span<const std::string_view> names);
  /// The first that takes this node alone; null where code is generated for it.
  const Implementation* find(const ir::Node& n) const;
  /// Whether one takes this call of a primitive.
  bool takes(const ops::Row& row, const ir::Args& args) const;
  /// Those that take more than a node of this primitive.
  std::vector<const Implementation*> of_groups(const ir::Op* op) const;
  /// The first step of a sum, which a call takes that makes what is summed up; null where there is none.
  ir::Value first_sums(ir::Value x, const std::vector<int64_t>& dims) const;
  const std::vector<std::string_view>& names() const { return names_; }

 private:
  std::vector<std::string_view> names_;
  std::vector<std::pair<const ir::Op*, const Implementation*>> rows_;
};

/// Those of a device that may be called now: one that rounds operands of float32 is left out unless the user allows it.
Libraries libraries_of(const runtime::Properties& device);

/// Calls that compute more than a node, by the last one.
struct LibraryGroup {
  const Implementation* by;
  Covered covered;
};
using LibraryGroups = std::unordered_map<const ir::Node*, LibraryGroup>;

}  // namespace brasa::compiler
