#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <brasa/tensor.h>

/// PyTorch's checkpoints: what `torch.save` writes and `torch.load(weights_only=True)` reads. A file gives tensors, numbers, texts and
/// plain containers; it names classes and functions, of which a short list is known and every other is an error. Nothing of a
/// file is executed.
namespace brasa::pickle {

/// A value of a checkpoint. Copies share what they hold, which does not change.
class BRASA_API Value {
 public:
  enum class Kind : uint8_t {
    None,
    Bool,
    Int,
    BigInt,  ///< an integer beyond 64 bits, as its decimal digits
    Float,
    Complex,
    String,
    Bytes,
    DType,     ///< by PyTorch's name: "float32"
    Device,    ///< "cpu", "cuda:0"
    Constant,  ///< a layout or a scheme of quantisation: "sparse_coo", "per_tensor_affine"
    List,
    Tuple,
    Set,
    Size,
    Dict,
    OrderedDict,
    Counter,
    Tensor,
    Storage,  ///< memory by itself: all its elements as a tensor, of uint8 where it has no dtype
    Object,   ///< of a TorchScript archive: its class's name and its attributes
  };
  using Items = std::vector<Value>;
  using Pairs = std::vector<std::pair<Value, Value>>;
  /// An integer stands for (integer - zero_point) * scale.
  struct Quantizer {
    Tensor scale, zero_point;  ///< float64 and int64: one element, or one for each index of `axis`
    std::optional<int64_t> axis;
  };
  /// Tensors that shared their memory do so here; a conjugate or negative view has memory of its own. A dtype that Brasa has not (uint16, float8_e5m2fnuz, …) comes as integers of its
  /// width, bit by bit.
  struct StoredTensor {
    Tensor tensor;
    std::string dtype;  ///< the file's
    bool parameter = false;
    /// Of a quantised tensor (qint8, quint8, qint32), which comes as its integers.
    std::optional<Quantizer> quantizer = {};
    /// Float32, of a quantised tensor.
    Tensor dequantize() const;
  };
  struct Attributes;

  Value() = default;
  Value(bool v) : kind_(Kind::Bool), held_(v) {}                     // NOLINT
  Value(int v) : Value(int64_t{v}) {}                                // NOLINT
  Value(int64_t v) : kind_(Kind::Int), held_(v) {}                   // NOLINT
  Value(double v) : kind_(Kind::Float), held_(v) {}                  // NOLINT
  Value(std::complex<double> v) : kind_(Kind::Complex), held_(v) {}  // NOLINT
  Value(const char* v) : Value(std::string(v)) {}                    // NOLINT
  Value(std::string v) : Value(Kind::String, std::move(v)) {}        // NOLINT
  Value(const Tensor& v);                                            // NOLINT
  Value(brasa::DType v);                                             // NOLINT
  Value(const brasa::Device& v);                                     // NOLINT
  static Value big_int(std::string digits) { return {Kind::BigInt, std::move(digits)}; }
  static Value bytes(std::string v) { return {Kind::Bytes, std::move(v)}; }
  static Value dtype(std::string name) { return {Kind::DType, std::move(name)}; }
  static Value device(std::string name) { return {Kind::Device, std::move(name)}; }
  static Value constant(std::string name) { return {Kind::Constant, std::move(name)}; }
  static Value list(Items v) { return {Kind::List, std::move(v)}; }
  /// As TorchScript writes lists of one type: Int, Float, Bool or Tensor.
  static Value list_of(Kind element, Items v);
  static Value tuple(Items v) { return {Kind::Tuple, std::move(v)}; }
  static Value set(Items v) { return {Kind::Set, std::move(v)}; }
  static Value size(IntArrayRef sizes);
  static Value dict(Pairs v) { return {Kind::Dict, std::move(v)}; }
  static Value ordered_dict(Pairs v) { return {Kind::OrderedDict, std::move(v)}; }
  static Value counter(Pairs v) { return {Kind::Counter, std::move(v)}; }
  static Value stored(StoredTensor v);
  /// A tensor of one dimension.
  static Value storage(StoredTensor v);
  static Value parameter(const Tensor& v);
  static Value object(std::string type, Pairs attributes);

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::None; }
  bool is_string() const { return kind_ == Kind::String; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
  /// List, Tuple, Set or Size.
  bool is_sequence() const { return kind_ >= Kind::List && kind_ <= Kind::Size; }
  bool is_dict() const { return kind_ >= Kind::Dict && kind_ <= Kind::Counter; }

  // brasa::Error for a value of another kind.
  bool to_bool() const;
  int64_t to_int() const;
  /// Of integers too.
  double to_double() const;
  std::complex<double> to_complex() const;
  /// Of String, Bytes, BigInt, DType, Device, Constant; the class of an Object.
  const std::string& text() const;
  const Items& items() const;
  /// Of a list whose type the file names; None of any other.
  Kind element_kind() const { return element_; }
  /// Of dictionaries and objects, in the file's order.
  const Pairs& pairs() const;
  /// Of Tensor and Storage.
  const StoredTensor& stored() const;
  /// brasa::Error if its dtype is one that Brasa has not.
  const Tensor& to_tensor() const;
  /// The value of this key or attribute; nullptr, or an error that lists what there is.
  const Value* find(std::string_view key) const;
  const Value& at(std::string_view key) const;
  /// "list", "OrderedDict", … for messages.
  std::string_view kind_name() const;
  /// The object that copies share, null for numbers and None.
  const void* identity() const;

 private:
  Value(Kind kind, std::string v) : kind_(kind), held_(std::make_shared<const std::string>(std::move(v))) {}
  Value(Kind kind, Items v);
  Value(Kind kind, Pairs v);
  [[noreturn]] void wrong_kind(const char* wanted) const;

  Kind kind_ = Kind::None, element_ = Kind::None;
  std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::shared_ptr<const std::string>,
               std::shared_ptr<const Items>, std::shared_ptr<const Pairs>, std::shared_ptr<const StoredTensor>,
               std::shared_ptr<const Attributes>>
      held_;
};

/// Reads a checkpoint of either form, the zip archive or the one before PyTorch 1.6. Tensors get memory on the host, wherever they
/// were. brasa::Error for a file that is malformed, or names a class or function that is not known.
BRASA_API Value load(const std::string& path);
/// The same without a copy: the tensors' memory is the mapped file's, of which only what is used is read. What is written to them stays in
/// this process. The file must keep its size meanwhile. For zip archives only.
BRASA_API Value map(const std::string& path);
/// `source` names the bytes in errors.
BRASA_API Value parse(std::span<const std::byte> bytes, const std::string& source = "checkpoint");

/// Writes what torch.load reads. Objects are errors.
BRASA_API void save(const Value& value, const std::string& path);
/// The file's bytes.
BRASA_API std::string dump(const Value& value);

}  // namespace brasa::pickle
