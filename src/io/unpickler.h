#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <brasa/pickle.h>

#include "io/script_lists.h"
#include "io/stored_tensor.h"

namespace brasa::io {

/// A storage that a pickle names: where its bytes are, the container of the pickle knows.
struct StorageRecord {
  std::string key;
  uint64_t bytes = 0, number = 1;  // and those of one number, whose order a file may have turned
};

/// Runs a pickle's opcodes (protocols 0 to 5) on values of its own: containers, numbers, texts, storages by their key, and
/// tensors on these. A class or function is only a name; calling it works for those of a list (known_globals.h). Memory is in proportion to
/// the pickle's bytes. brasa::Error for everything else, with the place.
class Unpickler {
 public:
  struct Options {
    std::string source;
    bool objects = false;  // TorchScript's: classes whose names begin with __torch__
  };
  Unpickler(std::span<const std::byte> bytes, Options options) : bytes_(bytes), options_(std::move(options)) {}

  /// Up to STOP.
  void run();
  /// How many bytes that took.
  size_t consumed() const { return at_; }
  const std::vector<StorageRecord>& storages() const { return storages_; }
  /// The value, with its tensors on these storages, one for each of `storages()`.
  pickle::Value value(const std::vector<StorageRef>& storages);

 private:
  struct Node {
    enum class Type : uint8_t { Leaf, List, Tuple, Set, Dict, OrderedDict, Counter, Global, Storage, Tensor, Object };
    enum class State : uint8_t { Raw, Freezing, Frozen };
    Type type = Type::Leaf;
    State state = State::Raw;
    uint32_t index = 0;                                       // of its storage or tensor
    pickle::Value::Kind element = pickle::Value::Kind::None;  // a list's, where the file names it
    pickle::Value leaf;                                       // a global's name, an object's class; what it became
    std::vector<Node*> items;                                 // keys and values in turn
    bool is_dict() const { return type == Type::Dict || type == Type::OrderedDict || type == Type::Counter; }
  };
  using Type = Node::Type;
  struct TensorRecord {
    uint32_t storage = 0;
    Placement placement;
    bool requires_grad = false, parameter = false, conjugate = false, negative = false;
    Node* quantizer = nullptr;  // a tuple: the scheme, scales, zero points[, axis]
    Node* sparse = nullptr;     // a tuple: the layout, a tuple of its parts
  };
  using Arguments = std::span<Node* const>;

  [[noreturn]] void error(const std::string& what) const;
  void step(uint8_t opcode);
  bool step_text(uint8_t opcode);

  // The bytes.
  std::span<const std::byte> take(uint64_t count);
  template <class T>
  T number();
  std::string text(uint64_t count);
  std::string raw(uint64_t count);
  std::string line();

  // The stack.
  Node* make(Type type);
  Node* leaf(pickle::Value v);
  void push(Node* n) { stack_.push_back(n); }
  void push(pickle::Value v) { push(leaf(std::move(v))); }
  Node* pop();
  Node* top();
  std::vector<Node*> pop_mark();
  void remember(uint64_t key);
  void recall(uint64_t key);

  void append(Node* to, Arguments items);
  void set_items(Node* to, Arguments items);
  void build(Node* object, Node* state);
  void push_global(const std::string& module, const std::string& name);
  void push_integer(std::span<const std::byte> bytes);
  void persistent(Node* id);

  // Calls (known_globals.cpp).
  bool known(const std::string& name) const;
  Node* call(Node* function, Node* arguments);
  Node* call(const std::string& name, Arguments a);
  Node* tensor(const std::string& name, Arguments a);
  Node* plain_tensor(const std::string& name, Arguments a);
  Node* quantized_tensor(Arguments a);
  Node* sparse_tensor(Arguments a);
  Node* copied_tensor(Arguments a);
  Node* parameter(const std::string& name, Arguments a);
  Node* make(TensorRecord record);
  TensorRecord record(Arguments a, std::optional<StoredDType> dtype);

  // What an argument must be.
  const std::string& string_of(const Node* n, const char* what) const;
  int64_t int_of(const Node* n, const char* what) const;
  bool bool_of(const Node* n, const char* what) const;
  std::vector<int64_t> ints_of(const Node* n, const char* what) const;

  const pickle::Value& freeze(Node* n, int depth);
  pickle::Value frozen(Node* n, int depth);
  // Tensors (rebuilt_tensors.cpp).
  pickle::Value frozen_tensor(const TensorRecord& t, int depth);
  pickle::Value frozen_storage(uint32_t index);
  Tensor sparse_of(const TensorRecord& t, int depth);
  pickle::Value::Quantizer quantizer_of(const TensorRecord& t, int depth);
  Tensor part_of(Node* n, const char* what, int depth);
  std::string key_text(const pickle::Value& v, int depth);

  std::span<const std::byte> bytes_;
  Options options_;
  size_t at_ = 0;
  std::deque<Node> nodes_;
  std::vector<Node*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Node*> memo_;
  std::vector<StorageRecord> storages_;
  std::vector<std::optional<StoredDType>> storage_dtypes_;  // one a storage; none of an untyped one
  std::unordered_map<std::string, uint32_t> storage_index_;
  std::vector<TensorRecord> tensors_;
  Node* result_ = nullptr;
  Node* constants_[3] = {};  // None, False, True
  const std::vector<StorageRef>* values_ = nullptr;
  uint64_t key_bytes_ = 0;
};

}  // namespace brasa::io
