#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <brasa/tensor.h>

namespace brasa {

template <class T>
class List;
template <class Key, class Value>
class Dict;
namespace ivalue {
class Tuple;
struct ListItems;
class DictItems;
template <class T>
struct To;
}  // namespace ivalue

/// A value of any of LibTorch's kinds: what a custom function keeps between forward and backward, what an archive holds, and what
/// `pickle_load` gives. Lists and dictionaries are shared by copies of the value. <brasa/containers.h> has their types.
class BRASA_API IValue {
 public:
  enum class Tag : uint8_t {
    None,
    Double,
    Int,
    Bool,
    String,
    Tensor,
    ComplexDouble,
    Device,
    Tuple,
    GenericList,
    GenericDict
  };

  IValue() = default;
  IValue(std::nullopt_t) {}                            // NOLINT
  IValue(double v) : held_(v) {}                       // NOLINT
  IValue(int64_t v) : held_(v) {}                      // NOLINT
  IValue(int v) : held_(int64_t{v}) {}                 // NOLINT
  IValue(bool v) : held_(v) {}                         // NOLINT
  IValue(std::complex<double> v) : held_(v) {}         // NOLINT
  IValue(const Scalar& v);                             // NOLINT
  IValue(std::string v);                               // NOLINT
  IValue(const char* v);                               // NOLINT
  IValue(Tensor v);                                    // NOLINT
  IValue(DType v) : held_(static_cast<int64_t>(v)) {}  // NOLINT
  template <std::same_as<Device> D>
  IValue(D v) : held_(v) {}        // NOLINT
  IValue(std::vector<int64_t> v);  // NOLINT
  IValue(std::vector<double> v);   // NOLINT
  IValue(std::vector<Tensor> v);   // NOLINT
  template <class T>
  IValue(const std::vector<T>& v);  // NOLINT
  template <class T>
  IValue(const List<T>& v);  // NOLINT
  template <class Key, class Value>
  IValue(const Dict<Key, Value>& v);  // NOLINT
  template <class... T>
  IValue(const std::tuple<T...>& v);  // NOLINT
  template <class T>
  IValue(const std::optional<T>& v) {  // NOLINT
    if (v) *this = IValue(*v);
  }
  IValue(std::shared_ptr<ivalue::Tuple> v);  // NOLINT
  explicit IValue(std::shared_ptr<ivalue::ListItems> v);
  explicit IValue(std::shared_ptr<ivalue::DictItems> v);

  Tag tag() const { return static_cast<Tag>(held_.index()); }
  /// "Int", "GenericDict", …
  std::string tagKind() const;
  bool isNone() const { return tag() == Tag::None; }
  bool isDouble() const { return tag() == Tag::Double; }
  bool isInt() const { return tag() == Tag::Int; }
  bool isBool() const { return tag() == Tag::Bool; }
  bool isString() const { return tag() == Tag::String; }
  bool isTensor() const { return tag() == Tag::Tensor; }
  bool isComplexDouble() const { return tag() == Tag::ComplexDouble; }
  bool isDevice() const { return tag() == Tag::Device; }
  bool isScalar() const { return isDouble() || isInt() || isBool() || isComplexDouble(); }
  bool isTuple() const { return tag() == Tag::Tuple; }
  bool isList() const { return tag() == Tag::GenericList; }
  bool isGenericDict() const { return tag() == Tag::GenericDict; }
  // Lists that were made of this type, and others whose elements are all of it.
  bool isIntList() const { return isListOf(Tag::Int); }
  bool isDoubleList() const { return isListOf(Tag::Double); }
  bool isBoolList() const { return isListOf(Tag::Bool); }
  bool isTensorList() const { return isListOf(Tag::Tensor); }

  // brasa::Error for a value of another kind.
  double toDouble() const;
  int64_t toInt() const;
  bool toBool() const;
  std::complex<double> toComplexDouble() const;
  Scalar toScalar() const;
  const std::string& toStringRef() const;
  std::string_view toStringView() const { return toStringRef(); }
  const Tensor& toTensor() const;
  Device toDevice() const;
  DType toScalarType() const { return static_cast<DType>(toInt()); }
  std::vector<int64_t> toIntVector() const;
  std::vector<double> toDoubleVector() const;
  std::vector<Tensor> toTensorVector() const;
  std::shared_ptr<ivalue::Tuple> toTuple() const;
  const ivalue::Tuple& toTupleRef() const { return *toTuple(); }
  const std::vector<IValue>& toListRef() const;
  List<IValue> toList() const;
  List<int64_t> toIntList() const;
  List<double> toDoubleList() const;
  List<bool> toBoolList() const;
  List<Tensor> toTensorList() const;
  Dict<IValue, IValue> toGenericDict() const;
  template <class T>
  T to() const;
  template <class T>
  std::optional<T> toOptional() const;

  /// What copies share: null but for containers.
  const void* identity() const;
  /// Numbers and texts by value, containers by their elements, tensors by identity.
  friend BRASA_API bool operator==(const IValue& a, const IValue& b);
  friend BRASA_API std::ostream& operator<<(std::ostream& out, const IValue& v);

 private:
  template <class T>
  friend class List;
  template <class Key, class Value>
  friend class Dict;
  bool isListOf(Tag element) const;
  template <class T>
  friend struct ivalue::To;
  template <class T>
  T typed() const;
  template <class T>
  const T& as(const char* wanted) const;
  const std::shared_ptr<ivalue::ListItems>& list() const;
  const std::shared_ptr<ivalue::DictItems>& dict() const;

  std::variant<std::monostate, double, int64_t, bool, std::shared_ptr<const std::string>, Tensor, std::complex<double>,
               Device, std::shared_ptr<ivalue::Tuple>, std::shared_ptr<ivalue::ListItems>,
               std::shared_ptr<ivalue::DictItems>>
      held_;
};

}  // namespace brasa
