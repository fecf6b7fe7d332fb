#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <brasa/brasa.h>

// What an archive's JSON says, with names resolved: a value is a slot of its graph, an operator what runs it.
namespace brasa::import {

struct Graph;
struct Node;
class Frame;

/// A value by the place that it has while its graph runs; -1 for None.
struct Ref {
  int slot = -1;
};
struct Refs {
  std::vector<int> slots;
  bool optional = false;  // a list that may hold None
};
/// A list of numbers of one type, some of which are values.
struct NumberList {
  enum class Type : uint8_t { Int, Float, Bool } type = Type::Int;
  struct Item {
    int slot = -1;  // else the number
    double real = 0;
    int64_t integer = 0;
  };
  std::vector<Item> items;
};

struct Argument {
  std::string name;  // empty for higher-order operators
  std::variant<std::monostate, Ref, Refs, NumberList, Scalar, std::string, std::vector<std::string>, DType, Layout,
               MemoryFormat, Device, std::shared_ptr<const Graph>>
      value;
};

using Handler = void (*)(Frame&, const Node&);

struct Node {
  std::string name, target, op;  // op: "aten::add.Tensor"
  std::vector<Argument> arguments;
  std::vector<int> outputs;  // lists as their items; -1 where nothing is wanted
  std::vector<int> last_uses;
  std::string source;  // the line of the program that it was made from, where the archive has it
  Handler run = nullptr;
};

struct Graph {
  std::vector<int> inputs;
  std::vector<Argument> outputs;
  std::vector<Node> nodes;
  std::vector<std::string> slots;  // their names
};

/// A size: a number, or factor · symbol + offset; without a symbol it is another expression.
struct Size {
  std::string symbol;
  std::optional<int64_t> number;
  std::optional<int64_t> example = {};  // of what is no number: what it was in the export
  int64_t factor = 1, offset = 0;
};
struct TensorMeta {
  DType dtype = DType::Float32;
  std::vector<Size> sizes;
};

struct InputSpec {
  enum class Kind : uint8_t { User, Parameter, Buffer, Constant, Number } kind = Kind::User;
  std::string name;        // of the user's input as in the graph, or the parameter's, buffer's, constant's
  bool persistent = true;  // of a buffer
  std::optional<TensorMeta> meta;
  Scalar number;  // of a user's input that export took for fixed
  bool none = false;
};
struct OutputSpec {
  enum class Kind : uint8_t {
    User,
    Loss,
    BufferMutation,
    ParameterMutation,
    InputMutation,
    ParameterGradient,
    InputGradient
  } kind = Kind::User;
  std::string target;  // what is changed, or has the gradient
};
struct Range {
  std::string symbol;
  int64_t least = 0;
  std::optional<int64_t> greatest;
};

struct Program {
  Graph graph;
  std::vector<InputSpec> inputs;    // one a graph input
  std::vector<OutputSpec> outputs;  // one a graph output
  std::vector<Range> ranges;
  std::string torch_version, source;
  std::optional<Device> device;  // stands for every device that the archive names
  bool joint() const;
};

/// brasa::Error for what is malformed; `resolve` off leaves operators that are not there without a handler.
Program parse_program(const std::string& json, const std::string& source, std::optional<Device> device, bool resolve);
/// What runs a node of this target; nullptr if nothing does. `op` becomes the operator's name in the table.
Handler handler_of(const std::string& target, std::string& op);
/// "node 'x' (torch.ops.aten.relu.default), made by model.py:12: y = relu(x)".
std::string describe(const Node& node);

}  // namespace brasa::import
