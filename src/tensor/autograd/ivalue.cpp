#include <brasa/brasa.h>
#include <brasa/containers.h>

#include <array>
#include <cmath>
#include <limits>
#include <ostream>

#include "support/error.h"

namespace brasa {

using ivalue::DictItems;
using ivalue::ListItems;

namespace {

constexpr std::array kTags{"None",          "Double", "Int",   "Bool",        "String",     "Tensor",
                           "ComplexDouble", "Device", "Tuple", "GenericList", "GenericDict"};

template <class T>
std::shared_ptr<ListItems> items_of(const std::vector<T>& v) {
  auto out = std::make_shared<ListItems>();
  out->of = ivalue::tag_of<T>();
  out->items.assign(v.begin(), v.end());
  return out;
}

}  // namespace

IValue::IValue(const Scalar& v) {
  if (v.isBoolean())
    held_ = v.toBool();
  else if (v.isIntegral())
    held_ = v.toLong();
  else if (v.isComplex())
    held_ = v.toComplexDouble();
  else
    held_ = v.toDouble();
}
IValue::IValue(std::string v) : held_(std::make_shared<const std::string>(std::move(v))) {}
IValue::IValue(const char* v) : IValue(std::string(v)) {}
IValue::IValue(Tensor v) : held_(std::move(v)) {}
IValue::IValue(std::vector<int64_t> v) : IValue(items_of(v)) {}
IValue::IValue(std::vector<double> v) : IValue(items_of(v)) {}
IValue::IValue(std::vector<Tensor> v) : IValue(items_of(v)) {}
IValue::IValue(std::shared_ptr<ivalue::Tuple> v) : held_(std::move(v)) {}
IValue::IValue(std::shared_ptr<ListItems> v) : held_(std::move(v)) {}
IValue::IValue(std::shared_ptr<DictItems> v) : held_(std::move(v)) {}

template <class T>
const T& IValue::as(const char* wanted) const {
  const T* p = std::get_if<T>(&held_);
  BRASA_CHECK(p, "Expected ", wanted, " but got ", tagKind());
  return *p;
}

std::string IValue::tagKind() const { return kTags[held_.index()]; }
double IValue::toDouble() const { return as<double>("Double"); }
int64_t IValue::toInt() const { return as<int64_t>("Int"); }
bool IValue::toBool() const { return as<bool>("Bool"); }
std::complex<double> IValue::toComplexDouble() const { return as<std::complex<double>>("ComplexDouble"); }
const std::string& IValue::toStringRef() const { return *as<std::shared_ptr<const std::string>>("String"); }
const Tensor& IValue::toTensor() const { return as<Tensor>("Tensor"); }
Device IValue::toDevice() const { return as<Device>("Device"); }
std::shared_ptr<ivalue::Tuple> IValue::toTuple() const { return as<std::shared_ptr<ivalue::Tuple>>("Tuple"); }
const std::shared_ptr<ListItems>& IValue::list() const { return as<std::shared_ptr<ListItems>>("GenericList"); }
const std::shared_ptr<DictItems>& IValue::dict() const { return as<std::shared_ptr<DictItems>>("GenericDict"); }
Scalar IValue::toScalar() const {
  switch (tag()) {
    case Tag::Double: return toDouble();
    case Tag::Int: return toInt();
    case Tag::Bool: return toBool();
    case Tag::ComplexDouble: return toComplexDouble();
    default: fail(str("Expected a number but got ", tagKind()));
  }
}

const void* IValue::identity() const {
  switch (tag()) {
    case Tag::Tuple: return toTuple().get();
    case Tag::GenericList: return list().get();
    case Tag::GenericDict: return dict().get();
    default: return nullptr;
  }
}

bool IValue::isListOf(Tag element) const {
  if (!isList()) return false;
  const ListItems& l = *list();
  if (l.of != Tag::None || l.items.empty()) return l.of == element;
  for (const IValue& v : l.items)
    if (v.tag() != element) return false;
  return true;
}
std::vector<int64_t> IValue::toIntVector() const { return to<std::vector<int64_t>>(); }
std::vector<double> IValue::toDoubleVector() const { return to<std::vector<double>>(); }
std::vector<Tensor> IValue::toTensorVector() const { return to<std::vector<Tensor>>(); }
const std::vector<IValue>& IValue::toListRef() const { return list()->items; }
List<IValue> IValue::toList() const { return List<IValue>(list()); }
List<int64_t> IValue::toIntList() const { return List<int64_t>(list()); }
List<double> IValue::toDoubleList() const { return List<double>(list()); }
List<bool> IValue::toBoolList() const { return List<bool>(list()); }
List<Tensor> IValue::toTensorList() const { return List<Tensor>(list()); }
Dict<IValue, IValue> IValue::toGenericDict() const { return Dict<IValue, IValue>(dict()); }

bool operator==(const IValue& a, const IValue& b) {
  using Tag = IValue::Tag;
  if (a.tag() != b.tag()) return false;
  switch (a.tag()) {
    case Tag::String: return a.toStringRef() == b.toStringRef();
    case Tag::Tensor: return a.toTensor().is_same(b.toTensor());
    case Tag::Tuple: return a.toTupleRef().elements() == b.toTupleRef().elements();
    case Tag::GenericList: return a.toListRef() == b.toListRef();
    case Tag::GenericDict: {
      // In any order.
      DictItems &x = *a.dict(), &y = *b.dict();
      if (x.pairs.size() != y.pairs.size()) return false;
      for (const auto& [key, value] : x.pairs) {
        auto found = y.find(key);
        if (found == y.pairs.end() || !(found->second == value)) return false;
      }
      return true;
    }
    case Tag::None: return true;
    case Tag::Double: return a.toDouble() == b.toDouble();
    case Tag::Int: return a.toInt() == b.toInt();
    case Tag::Bool: return a.toBool() == b.toBool();
    case Tag::ComplexDouble: return a.toComplexDouble() == b.toComplexDouble();
    case Tag::Device: return a.toDevice() == b.toDevice();
  }
  return false;
}

namespace {

// Whole numbers with a point, as LibTorch prints them.
void print(std::ostream& out, double d) {
  if (std::abs(d) < 1e18 && d == std::trunc(d)) {
    out << static_cast<int64_t>(d) << '.';
    return;
  }
  auto before = out.precision(std::numeric_limits<double>::max_digits10);
  out << d;
  out.precision(before);
}

void print(std::ostream& out, const std::vector<IValue>& items, char open, char close, bool tuple) {
  out << open;
  for (size_t i = 0; i < items.size(); ++i) out << (i ? ", " : "") << items[i];
  if (tuple && items.size() == 1) out << ',';
  out << close;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const IValue& v) {
  using Tag = IValue::Tag;
  switch (v.tag()) {
    case Tag::None: return out << "None";
    case Tag::Double: print(out, v.toDouble()); return out;
    case Tag::Int: return out << v.toInt();
    case Tag::Bool: return out << (v.toBool() ? "True" : "False");
    case Tag::String: return out << v.toStringRef();
    case Tag::Tensor: return out << v.toTensor();
    case Tag::ComplexDouble: {
      std::complex<double> c = v.toComplexDouble();
      print(out, c.real());
      if (!std::signbit(c.imag())) out << '+';
      print(out, c.imag());
      return out << 'j';
    }
    case Tag::Device: return out << v.toDevice();
    case Tag::Tuple: print(out, v.toTupleRef().elements(), '(', ')', true); return out;
    case Tag::GenericList: print(out, v.toListRef(), '[', ']', false); return out;
    case Tag::GenericDict: {
      out << '{';
      const char* between = "";
      for (const auto& [key, value] : v.dict()->pairs) {
        out << between << key << ": " << value;
        between = ", ";
      }
      return out << '}';
    }
  }
  return out;
}

namespace ivalue {

size_t Hash::operator()(const IValue& key) const {
  using Tag = IValue::Tag;
  switch (key.tag()) {
    case Tag::Int: return std::hash<int64_t>()(key.toInt());
    case Tag::Double: return std::hash<double>()(key.toDouble());
    case Tag::Bool: return std::hash<bool>()(key.toBool());
    case Tag::String: return std::hash<std::string>()(key.toStringRef());
    case Tag::ComplexDouble: {
      std::complex<double> c = key.toComplexDouble();
      return std::hash<double>()(c.real()) * 31 + std::hash<double>()(c.imag());
    }
    case Tag::Device: return std::hash<std::string>()(key.toDevice().str());
    case Tag::Tensor: return std::hash<const void*>()(key.toTensor().unsafeGetTensorImpl());
    default: fail(str("Dict: a ", key.tagKind(), " cannot be a key; expected a number, text, tensor or device"));
  }
}

std::pair<DictItems::Pairs::iterator, bool> DictItems::insert(const IValue& key, const IValue& value) {
  auto [place, fresh] = places_.try_emplace(key, pairs.end());
  if (fresh) place->second = pairs.emplace(pairs.end(), key, value);
  return {place->second, fresh};
}
DictItems::Pairs::iterator DictItems::find(const IValue& key) {
  auto place = places_.find(key);
  return place == places_.end() ? pairs.end() : place->second;
}
bool DictItems::erase(const IValue& key) {
  auto place = places_.find(key);
  if (place == places_.end()) return false;
  pairs.erase(place->second);
  places_.erase(place);
  return true;
}
void DictItems::clear() {
  places_.clear();
  pairs.clear();
}

}  // namespace ivalue
}  // namespace brasa
