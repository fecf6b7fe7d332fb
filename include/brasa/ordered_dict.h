#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <brasa/error.h>
#include <brasa/export.h>

namespace brasa {

namespace detail {
[[noreturn]] BRASA_API void empty_dict_error(const char* method);
[[noreturn]] BRASA_API void dict_error(const std::string& subject, const std::string& key, const char* what);
inline const std::string& dict_key_text(const std::string& key) { return key; }
template <class K>
std::string dict_key_text(const K& key) {
  return std::to_string(key);
}
}  // namespace detail

/// A dictionary that keeps the order of insertion; a key is inserted once.
template <class Key, class Value>
class OrderedDict {
 public:
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    Value& operator*() { return pair_.second; }
    const Value& operator*() const { return pair_.second; }
    Value* operator->() { return &pair_.second; }
    const Value* operator->() const { return &pair_.second; }
    const Key& key() const noexcept { return pair_.first; }
    Value& value() noexcept { return pair_.second; }
    const Value& value() const noexcept { return pair_.second; }
    const std::pair<Key, Value>& pair() const noexcept { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };
  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;

  explicit OrderedDict(std::string key_description = "Key") : subject_(std::move(key_description)) {}
  OrderedDict(std::initializer_list<Item> items) : subject_("Key") {
    for (const Item& item : items) insert(item.key(), item.value());
  }

  const std::string& key_description() const noexcept { return subject_; }
  size_t size() const noexcept { return items_.size(); }
  bool is_empty() const noexcept { return items_.empty(); }
  Iterator begin() { return items_.begin(); }
  Iterator end() { return items_.end(); }
  ConstIterator begin() const { return items_.begin(); }
  ConstIterator end() const { return items_.end(); }
  Item& front() {
    if (is_empty()) detail::empty_dict_error("front()");
    return items_.front();
  }
  const Item& front() const { return const_cast<OrderedDict&>(*this).front(); }
  Item& back() {
    if (is_empty()) detail::empty_dict_error("back()");
    return items_.back();
  }
  const Item& back() const { return const_cast<OrderedDict&>(*this).back(); }

  Item& operator[](size_t index) { return items_[index]; }
  const Item& operator[](size_t index) const { return items_[index]; }
  /// brasa::Error if there is none of this key.
  Value& operator[](const Key& key) {
    if (Value* v = find(key)) return *v;
    detail::dict_error(subject_, detail::dict_key_text(key), "is not defined");
  }
  const Value& operator[](const Key& key) const { return const_cast<OrderedDict&>(*this)[key]; }
  Value* find(const Key& key) noexcept {
    auto it = index_.find(key);
    return it == index_.end() ? nullptr : &items_[it->second].value();
  }
  const Value* find(const Key& key) const noexcept { return const_cast<OrderedDict&>(*this).find(key); }
  bool contains(const Key& key) const noexcept { return find(key) != nullptr; }

  Value& insert(Key key, Value value) {
    if (!index_.emplace(key, items_.size()).second)
      detail::dict_error(subject_, detail::dict_key_text(key), "already defined");
    items_.emplace_back(std::move(key), std::move(value));
    return items_.back().value();
  }
  void update(const OrderedDict& other) {
    for (const Item& item : other) insert(item.key(), item.value());
  }
  void erase(const Key& key) {
    auto it = index_.find(key);
    if (it == index_.end()) detail::dict_error(subject_, detail::dict_key_text(key), "is not defined");
    size_t at = it->second;
    items_.erase(items_.begin() + static_cast<ptrdiff_t>(at));
    index_.erase(it);
    for (auto& [k, i] : index_)
      if (i > at) --i;
  }
  void clear() {
    items_.clear();
    index_.clear();
  }
  void reserve(size_t n) { items_.reserve(n); }

  const std::vector<Item>& items() const noexcept { return items_; }
  std::vector<Key> keys() const {
    std::vector<Key> out;
    for (const Item& item : items_) out.push_back(item.key());
    return out;
  }
  std::vector<Value> values() const {
    std::vector<Value> out;
    for (const Item& item : items_) out.push_back(item.value());
    return out;
  }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> out;
    for (const Item& item : items_) out.push_back(item.pair());
    return out;
  }

 private:
  std::unordered_map<Key, size_t> index_;
  std::vector<Item> items_;
  std::string subject_;
};

}  // namespace brasa
