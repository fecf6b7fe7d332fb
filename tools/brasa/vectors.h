#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <brasa/dtype.h>

// Reference vectors of operators: calls with arguments, results and gradients, as PyTorch gave them. A folder has an index.json with
// a card for each overload, and for each overload its calls as JSON and their tensors as safetensors.
namespace brasa::verify {

/// A tensor's elements in row-major order.
struct Array {
  DType dtype = DType::Float32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
  std::vector<int64_t> strides;  // as PyTorch has them in memory; not how `bytes` lie
};

struct MemoryFormatName {
  std::string name;
};
struct DeviceName {
  std::string name;
};
struct LayoutName {
  std::string name;
};
/// Position in Entry::tensors.
struct TensorAt {
  size_t at;
};
/// An argument: nothing, a literal, a tensor, or a list of those.
struct Value {
  std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, DType, MemoryFormatName,
               DeviceName, LayoutName, TensorAt, std::vector<Value>>
      v;
};

struct Entry {
  std::vector<Value> args;
  std::vector<std::pair<std::string, Value>> kwargs;
  std::vector<Array> tensors;
  std::vector<bool> needs_gradient;              // one a tensor
  std::vector<std::optional<Array>> cotangents;  // one an output; empty without gradients

  std::vector<std::optional<Array>> outputs;  // lists flattened; absent: an undefined tensor
  std::vector<bool> numbers;  // one an output: it is a number, a bool or a dtype, here without dimensions
  bool metadata_only = false;
  std::optional<std::string> raises;            // why PyTorch refuses the call; nothing else is expected then
  std::vector<std::optional<Array>> changed;    // one a tensor: what it holds after the call, where that differs
  std::vector<std::optional<Array>> gradients;  // one a tensor; absent where none was asked for or none flows
};

/// What a call gave, in Entry's form.
struct Outcome {
  std::vector<std::optional<Array>> outputs;
  std::vector<Array> inputs_after;              // empty: nobody looked
  std::vector<std::optional<Array>> gradients;  // one a tensor; absent means zero
};

/// Not a failure: what the call needs is not there yet.
struct Unsupported {
  std::string reason;
};

/// One overload's calls.
class VectorFile {
 public:
  struct Impl;
  /// `stem` is the path without ".json" and ".safetensors".
  explicit VectorFile(const std::string& stem);
  ~VectorFile();
  size_t size() const;
  /// As it stands in the file; `entry` has what the file's tensors hold.
  const nlohmann::json& call(size_t i) const;
  /// Throws Unsupported for dtypes that are not there yet.
  Entry entry(size_t i) const;

 private:
  std::unique_ptr<Impl> impl_;
};

DType dtype_named(const std::string& name);
/// The arguments of a call in the file's form, its tensors as `array` makes them, "gradients" a list of their names.
Entry read_call(const nlohmann::json& call, const std::function<Array(const nlohmann::json&)>& array);

/// What holds for all calls of an overload.
struct Card {
  std::map<DType, double> values, gradients;  // tolerances
  bool ambiguous = false;                     // another right answer exists, such as another order of equal elements
};
/// The cards of a folder's index.json, by overload as the vectors name it ("aten.abs.default").
std::map<std::string, Card> read_cards(const std::string& folder);
/// "aten::abs.default" of "aten.abs.default".
std::string operator_name(const std::string& overload);

}  // namespace brasa::verify
