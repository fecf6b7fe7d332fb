#include <brasa/serialize/archive.h>

#include <algorithm>
#include <charconv>
#include <set>

#include <brasa/brasa.h>

#include "support/error.h"

namespace brasa::serialize {

using autograd::IValue;

void Order::add(std::string_view name) {
  for (size_t dot = name.find('.');; dot = name.find('.', dot + 1)) {
    places_.try_emplace(std::string(name.substr(0, dot)), next_);
    if (dot == name.npos) break;
  }
  ++next_;
}
void Order::add(const std::string& name, const Order& below) {
  add(name);
  for (const auto& [inner, place] : below.places_) places_.try_emplace(name + "." + inner, next_ + place);
  next_ += below.next_;
}
size_t Order::place(const std::string& name) const {
  auto found = places_.find(name);
  return found == places_.end() ? SIZE_MAX : found->second;
}

void OutputArchive::write(const std::string& key, const Tensor& tensor, bool) {
  if (!tensor.defined()) return;
  contents_.tensors[key] = tensor.detach();
  contents_.order.add(key);
  if (tensor.requires_grad()) contents_.parameters.insert(key);
}
void OutputArchive::write(const std::string& key, const std::string& text) {
  contents_.texts[key] = text;
  contents_.order.add(key);
}
void OutputArchive::write(const std::string& key, const OutputArchive& nested) {
  for (const auto& [name, tensor] : nested.contents_.tensors) contents_.tensors[key + "." + name] = tensor;
  for (const auto& [name, text] : nested.contents_.texts) contents_.texts[key + "." + name] = text;
  for (const std::string& name : nested.contents_.parameters) contents_.parameters.insert(key + "." + name);
  contents_.parts.insert(key);
  contents_.order.add(key, nested.contents_.order);
  for (const std::string& name : nested.contents_.parts) contents_.parts.insert(key + "." + name);
}

namespace {

// The texts of values that are no tensors begin with their kind.
std::string text_of(const std::string& key, const IValue& v) {
  if (v.isInt()) return str("int ", v.toInt());
  if (v.isDouble()) return str("double ", v.toDouble());
  if (v.isBool()) return str("bool ", v.toBool() ? 1 : 0);
  if (v.isString()) return "string " + v.toStringRef();
  fail(str("archive: '", key, "' is no number, text or tensor"));
}

template <class T>
bool parse(std::string_view text, T& out) {
  auto r = std::from_chars(text.data(), text.data() + text.size(), out);
  return r.ec == std::errc() && r.ptr == text.data() + text.size();
}

bool value_of(const std::string& text, IValue& out) {
  size_t space = text.find(' ');
  std::string kind = text.substr(0, space), rest = space == text.npos ? "" : text.substr(space + 1);
  int64_t i;
  double d;
  if (kind == "string")
    out = IValue(rest);
  else if (kind == "double" && parse(rest, d))
    out = IValue(d);
  else if (kind == "int" && parse(rest, i))
    out = IValue(i);
  else if (kind == "bool" && parse(rest, i))
    out = IValue(i != 0);
  else
    return false;
  return true;
}

template <class Map>
void collect(const Map& map, const std::string& prefix, std::set<std::string>& found) {
  for (auto it = map.lower_bound(prefix); it != map.end() && it->first.starts_with(prefix); ++it)
    found.insert(it->first.substr(prefix.size(), it->first.find('.', prefix.size()) - prefix.size()));
}

}  // namespace

void OutputArchive::write(const std::string& key, const IValue& value) {
  if (value.isTensor())
    write(key, value.toTensor());
  else
    write(key, text_of(key, value));
}

InputArchive::InputArchive(Contents contents)
    : contents_(std::make_shared<Contents>(std::move(contents))), source_("archive") {}

bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool) {
  if (!contents_) return false;
  auto it = contents_->tensors.find(prefix_ + key);
  if (it == contents_->tensors.end()) return false;
  NoGradGuard no_grad;
  if (!tensor.defined()) {
    tensor =
        it->second.clone().set_requires_grad(it->second.requires_grad() || contents_->parameters.contains(it->first));
    return true;
  }
  BRASA_CHECK(tensor.sizes() == it->second.sizes(), source_, ": tensor '", prefix_, key, "' has sizes ",
              it->second.sizes(), ", expected ", tensor.sizes());
  tensor.copy_(it->second);
  return true;
}
void InputArchive::read(const std::string& key, Tensor& tensor, bool is_buffer) {
  BRASA_CHECK(try_read(key, tensor, is_buffer), "No such serialized tensor '", prefix_, key, "'");
}
bool InputArchive::try_read(const std::string& key, std::string& text) const {
  if (!contents_) return false;
  auto it = contents_->texts.find(prefix_ + key);
  if (it == contents_->texts.end()) return false;
  text = it->second;
  return true;
}
bool InputArchive::try_read(const std::string& key, IValue& value) const {
  if (!contents_) return false;
  auto it = contents_->tensors.find(prefix_ + key);
  if (it != contents_->tensors.end()) {
    value = IValue(it->second);
    return true;
  }
  std::string text;
  return try_read(key, text) && value_of(text, value);
}
void InputArchive::read(const std::string& key, IValue& value) const {
  BRASA_CHECK(try_read(key, value), source_, ": it does not have a field with name '", prefix_, key, "'");
}
bool InputArchive::try_read(const std::string& key, InputArchive& nested) const {
  nested = *this;
  nested.prefix_ = prefix_ + key + ".";
  return !nested.keys().empty();
}
void InputArchive::read(const std::string& key, InputArchive& nested) const {
  BRASA_CHECK(try_read(key, nested), "No such serialized submodule: '", prefix_, key, "'");
}
std::vector<std::string> InputArchive::keys() const {
  std::set<std::string> found;
  if (contents_) {
    collect(contents_->tensors, prefix_, found);
    collect(contents_->texts, prefix_, found);
  }
  std::vector<std::pair<size_t, std::string>> placed;
  for (const std::string& name : found) placed.emplace_back(contents_->order.place(prefix_ + name), name);
  std::sort(placed.begin(), placed.end());
  std::vector<std::string> out;
  for (auto& [place, name] : placed) out.push_back(std::move(name));
  return out;
}

}  // namespace brasa::serialize
