#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <brasa/error.h>
#include <brasa/ivalue.h>

/// LibTorch's containers of values: tuples, lists and dictionaries that copies share, as in Python.
namespace brasa {
namespace ivalue {

class Tuple {
 public:
  explicit Tuple(std::vector<IValue> elements) : elements_(std::move(elements)) {}
  static std::shared_ptr<Tuple> create(std::vector<IValue> elements) {
    return std::make_shared<Tuple>(std::move(elements));
  }
  const std::vector<IValue>& elements() const { return elements_; }
  size_t size() const { return elements_.size(); }

 private:
  std::vector<IValue> elements_;
};

struct ListItems {
  std::vector<IValue> items;
  IValue::Tag of = IValue::Tag::None;  ///< None: of any
};

struct BRASA_API Hash {
  size_t operator()(const IValue& key) const;
};

/// Pairs in the order in which they came.
class BRASA_API DictItems {
 public:
  using Pairs = std::list<std::pair<const IValue, IValue>>;
  Pairs pairs;
  /// The pair's place, and whether it is new.
  std::pair<Pairs::iterator, bool> insert(const IValue& key, const IValue& value);
  Pairs::iterator find(const IValue& key);
  bool erase(const IValue& key);
  void clear();

 private:
  std::unordered_map<IValue, Pairs::iterator, Hash> places_;
};

template <class T>
constexpr IValue::Tag tag_of() {
  using Tag = IValue::Tag;
  if constexpr (std::is_same_v<T, double>) return Tag::Double;
  if constexpr (std::is_same_v<T, int64_t>) return Tag::Int;
  if constexpr (std::is_same_v<T, bool>) return Tag::Bool;
  if constexpr (std::is_same_v<T, std::string>) return Tag::String;
  if constexpr (std::is_same_v<T, Tensor>) return Tag::Tensor;
  if constexpr (std::is_same_v<T, std::complex<double>>) return Tag::ComplexDouble;
  return Tag::None;
}

/// An element that lies as a value: reads and writes convert.
template <class T>
class Reference {
 public:
  explicit Reference(IValue& at) : at_(&at) {}
  operator T() const { return at_->to<T>(); }  // NOLINT
  const IValue& get() const { return *at_; }
  Reference& operator=(const T& v) {
    *at_ = IValue(v);
    return *this;
  }
  friend bool operator==(const Reference& a, const T& b) { return *a.at_ == IValue(b); }

 private:
  IValue* at_;
};

}  // namespace ivalue

template <class T>
class List {
  using Items = std::vector<IValue>;

 public:
  using value_type = T;
  using size_type = size_t;
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = ivalue::Reference<T>;
    iterator() = default;
    explicit iterator(Items::iterator at) : at_(at) {}
    reference operator*() const { return reference(*at_); }
    iterator& operator++() { return ++at_, *this; }
    iterator operator++(int) { return iterator(at_++); }
    friend iterator operator+(iterator a, difference_type n) { return iterator(a.at_ + n); }
    friend difference_type operator-(iterator a, iterator b) { return a.at_ - b.at_; }
    friend bool operator==(iterator a, iterator b) { return a.at_ == b.at_; }

   private:
    friend class List;
    Items::iterator at_;
  };
  using const_iterator = iterator;

  List() : items_(std::make_shared<ivalue::ListItems>()) { items_->of = ivalue::tag_of<T>(); }
  List(std::initializer_list<T> values) : List(ArrayRef<T>(values.begin(), values.size())) {}
  explicit List(ArrayRef<T> values) : List() {
    for (const T& v : values) push_back(v);
  }

  size_t size() const { return items().size(); }
  bool empty() const { return items().empty(); }
  T get(size_t i) const { return item(i).template to<T>(); }
  T operator[](size_t i) const { return get(i); }
  ivalue::Reference<T> operator[](size_t i) { return ivalue::Reference<T>(item(i)); }
  void set(size_t i, const T& v) const { item(i) = IValue(v); }
  T extract(size_t i) const { return get(i); }
  void push_back(const T& v) const { items().emplace_back(v); }
  template <class... Args>
  void emplace_back(Args&&... args) const {
    push_back(T(std::forward<Args>(args)...));
  }
  void append(const List& other) const {
    for (size_t i = 0, n = other.size(); i < n; ++i) push_back(other.get(i));
  }
  void pop_back() const { items().pop_back(); }
  iterator insert(iterator at, const T& v) const { return iterator(items().insert(at.at_, IValue(v))); }
  iterator erase(iterator at) const { return iterator(items().erase(at.at_)); }
  void clear() const { items().clear(); }
  void reserve(size_t n) const { items().reserve(n); }
  void resize(size_t n, const T& v = T()) const { items().resize(n, IValue(v)); }
  iterator begin() const { return iterator(items().begin()); }
  iterator end() const { return iterator(items().end()); }
  std::vector<T> vec() const {
    std::vector<T> out;
    for (const IValue& v : items()) out.push_back(v.to<T>());
    return out;
  }
  /// For operators: the elements as they are now, while this list lives.
  operator ArrayRef<T>() const  // NOLINT
    requires(!std::is_same_v<T, bool>)
  {
    as_argument_ = vec();
    return as_argument_;
  }
  /// One of its own.
  List copy() const { return List(std::make_shared<ivalue::ListItems>(*items_)); }
  /// The type that it was made with; None: of any.
  IValue::Tag element_tag() const { return items_->of; }
  bool is(const List& other) const { return items_ == other.items_; }
  friend bool operator==(const List& a, const List& b) { return a.items() == b.items(); }

 private:
  friend class IValue;
  explicit List(std::shared_ptr<ivalue::ListItems> items) : items_(std::move(items)) {}
  Items& items() const { return items_->items; }
  IValue& item(size_t i) const {
    if (i >= size())
      throw IndexError("List: index " + std::to_string(i) + " is out of range, its size is " + std::to_string(size()));
    return items()[i];
  }
  std::shared_ptr<ivalue::ListItems> items_;
  mutable std::vector<T> as_argument_;
};

/// Keys are numbers, texts, tensors and devices. Iterators give entries: `for (const auto& e : dict) use(e.key(), e.value());`
template <class Key, class Value>
class Dict {
  using Pairs = ivalue::DictItems::Pairs;

 public:
  using key_type = Key;
  using mapped_type = Value;
  class Entry {
   public:
    Key key() const { return at_->first.template to<Key>(); }
    Value value() const { return at_->second.template to<Value>(); }
    void setValue(const Value& v) const { at_->second = IValue(v); }

   private:
    friend class Dict;
    explicit Entry(Pairs::iterator at) : at_(at) {}
    Pairs::iterator at_;
  };
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = const Entry*;
    using reference = const Entry&;
    const Entry& operator*() const { return entry_; }
    const Entry* operator->() const { return &entry_; }
    iterator& operator++() { return ++entry_.at_, *this; }
    iterator operator++(int) {
      iterator out = *this;
      ++*this;
      return out;
    }
    bool operator==(const iterator& o) const { return entry_.at_ == o.entry_.at_; }

   private:
    friend class Dict;
    explicit iterator(Pairs::iterator at) : entry_(at) {}
    Entry entry_;
  };
  using const_iterator = iterator;

  Dict() : items_(std::make_shared<ivalue::DictItems>()) {}
  size_t size() const { return items_->pairs.size(); }
  bool empty() const { return items_->pairs.empty(); }
  iterator begin() const { return iterator(items_->pairs.begin()); }
  iterator end() const { return iterator(items_->pairs.end()); }
  /// Where the key is, and whether it was new; the value of one that was there stays.
  std::pair<iterator, bool> insert(const Key& key, const Value& value) const {
    auto [at, fresh] = items_->insert(IValue(key), IValue(value));
    return {iterator(at), fresh};
  }
  std::pair<iterator, bool> insert_or_assign(const Key& key, const Value& value) const {
    auto out = insert(key, value);
    if (!out.second) out.first->setValue(value);
    return out;
  }
  iterator find(const Key& key) const { return iterator(items_->find(IValue(key))); }
  bool contains(const Key& key) const { return find(key) != end(); }
  Value at(const Key& key) const {
    iterator found = find(key);
    if (found == end()) throw std::out_of_range("Dict: there is no such key among the " + std::to_string(size()));
    return found->value();
  }
  size_t erase(const Key& key) const { return items_->erase(IValue(key)); }
  void clear() const { items_->clear(); }
  void reserve(size_t) const {}
  /// One of its own.
  Dict copy() const {
    Dict out;
    for (const auto& [key, value] : items_->pairs) out.items_->insert(key, value);
    return out;
  }
  bool is(const Dict& other) const { return items_ == other.items_; }
  friend bool operator==(const Dict& a, const Dict& b) { return IValue(a) == IValue(b); }

 private:
  friend class IValue;
  explicit Dict(std::shared_ptr<ivalue::DictItems> items) : items_(std::move(items)) {}
  std::shared_ptr<ivalue::DictItems> items_;
};

template <class T>
IValue::IValue(const List<T>& v) : IValue(v.items_) {}
template <class T>
IValue::IValue(const std::vector<T>& v) {
  List<T> out;
  for (const T& item : v) out.push_back(item);
  *this = IValue(out);
}
template <class Key, class Value>
IValue::IValue(const Dict<Key, Value>& v) : IValue(v.items_) {}
template <class... T>
IValue::IValue(const std::tuple<T...>& v)
    : IValue(std::apply([](const T&... e) { return ivalue::Tuple::create({IValue(e)...}); }, v)) {}

namespace ivalue {

// How a value becomes a T.
template <class T>
struct To {
  static T from(const IValue& v) {
    if constexpr (std::is_same_v<T, IValue>)
      return v;
    else if constexpr (std::is_same_v<T, bool>)
      return v.toBool();
    else if constexpr (std::is_same_v<T, DType>)
      return v.toScalarType();
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(v.toInt());
    else if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(v.toDouble());
    else if constexpr (std::is_same_v<T, std::complex<double>>)
      return v.toComplexDouble();
    else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>)
      return T(v.toStringRef());
    else if constexpr (std::is_same_v<T, Tensor>)
      return v.toTensor();
    else if constexpr (std::is_same_v<T, Device>)
      return v.toDevice();
    else if constexpr (std::is_same_v<T, Scalar>)
      return v.toScalar();
    else
      return v.toTuple();
  }
};
template <class T>
struct To<std::vector<T>> {
  static std::vector<T> from(const IValue& v) {
    std::vector<T> out;
    for (const IValue& item : v.toListRef()) out.push_back(item.to<T>());
    return out;
  }
};
template <class T>
struct To<std::optional<T>> {
  static std::optional<T> from(const IValue& v) { return v.toOptional<T>(); }
};
template <class... T>
struct To<std::tuple<T...>> {
  static std::tuple<T...> from(const IValue& v) {
    const std::vector<IValue>& elements = v.toTupleRef().elements();
    if (elements.size() != sizeof...(T))
      throw Error("Expected a tuple of " + std::to_string(sizeof...(T)) + " elements but got one of " +
                  std::to_string(elements.size()));
    size_t i = 0;
    return {elements[i++].to<T>()...};  // braces: from left to right
  }
};
template <class T>
struct To<List<T>> {
  static List<T> from(const IValue& v) { return v.template typed<List<T>>(); }
};
template <class Key, class Value>
struct To<Dict<Key, Value>> {
  static Dict<Key, Value> from(const IValue& v) { return v.template typed<Dict<Key, Value>>(); }
};

}  // namespace ivalue

template <class T>
T IValue::typed() const {
  if constexpr (requires { typename T::mapped_type; })
    return T(dict());
  else
    return T(list());
}
template <class T>
T IValue::to() const {
  return ivalue::To<T>::from(*this);
}
template <class T>
std::optional<T> IValue::toOptional() const {
  if (isNone()) return std::nullopt;
  return to<T>();
}

}  // namespace brasa
