#include "io/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "io/safetensors_format.h"
#include "support/error.h"

namespace brasa::safetensors {
namespace {

using Json = nlohmann::json;

// Takes the header as it is read: an object of tensors, each an object of dtype, shape and place; and the metadata, an object of strings.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  Reader(std::span<const std::byte> data, const std::string& source, Header& out)
      : data_(data), source_(source), out_(out) {}

  bool start_object(size_t) override {
    BRASA_CHECK(depth_ < 2 && !in_list_, where(),
                in_metadata_ ? "must be a string" : "nests deeper than a safetensors header may");
    ++depth_;
    if (depth_ == 2) {
      tensor_ = {};
      has_dtype_ = has_shape_ = has_place_ = false;
      metadata_keys_.clear();
    }
    return true;
  }
  bool end_object() override {
    if (depth_-- == 2 && !in_metadata_) add();
    in_metadata_ = in_metadata_ && depth_ == 2;
    return true;
  }
  bool key(string_t& k) override {
    if (depth_ == 1) {
      name_ = k;
      in_metadata_ = k == "__metadata__";
      if (in_metadata_)
        BRASA_CHECK(!std::exchange(has_metadata_, true), source_, ": the header has the key '__metadata__' twice");
    } else {
      item_ = k;
      if (in_metadata_)
        BRASA_CHECK(metadata_keys_.insert(k).second, source_, ": __metadata__ has the key '", k, "' twice");
      else
        BRASA_CHECK(!*seen(), source_, ": tensor '", name_, "' has the key '", k, "' twice");
    }
    return true;
  }
  bool start_array(size_t) override {
    value("a list");
    BRASA_CHECK(!in_list_, where(), "nests deeper than a safetensors header may");
    BRASA_CHECK(!in_metadata_ && item_ != "dtype", where(), "must be a string, got a list");
    *seen() = in_list_ = true;
    list_.clear();
    return true;
  }
  bool end_array() override {
    in_list_ = false;
    if (item_ == "shape") {
      for (uint64_t n : list_) {
        BRASA_CHECK(n <= static_cast<uint64_t>(INT64_MAX), where(), "size ", n, " is too large");
        tensor_.entry.shape.push_back(static_cast<int64_t>(n));
      }
    } else {
      BRASA_CHECK(list_.size() == 2, where(), "data_offsets must be a list of two");
      tensor_.begin = list_[0], tensor_.end = list_[1];
    }
    return true;
  }
  bool string(string_t& v) override {
    value("a string");
    BRASA_CHECK(!in_list_, where(), "a number must be a non-negative integer, got '", v, "'");
    if (in_metadata_) {
      out_.metadata.emplace(item_, std::move(v));
      return true;
    }
    BRASA_CHECK(item_ == "dtype", where(), item_, " must be a list");
    std::optional<Format> format = format_named(v);
    BRASA_CHECK(format, where(), "unknown dtype '", v, "'");
    has_dtype_ = true;
    tensor_.entry.format = format->name;
    tensor_.entry.dtype = format->dtype;
    bytes_ = static_cast<uint64_t>(format->bytes);
    return true;
  }
  bool number_unsigned(number_unsigned_t v) override {
    if (!in_list_) return other(str(v));
    list_.push_back(v);
    return true;
  }
  bool number_integer(number_integer_t v) override { return other(str(v)); }
  bool number_float(number_float_t v, const string_t&) override { return other(str(v)); }
  bool boolean(bool v) override { return other(str(v)); }
  // No metadata, as the format's own library reads it.
  bool null() override { return (depth_ == 1 && in_metadata_ && !in_list_) || other("null"); }
  bool binary(binary_t&) override { return other("bytes"); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) override {
    fail(str(source_, ": the header is not JSON: ", e.what()));
  }

 private:
  std::string where() const {
    if (depth_ == 0) return str(source_, ": the header ");
    if (in_metadata_)
      return depth_ == 1 ? str(source_, ": __metadata__ ") : str(source_, ": __metadata__['", item_, "'] ");
    return str(source_, ": tensor '", name_, "': ");
  }
  // What is no object is part of one of the innermost objects.
  void value(std::string_view got) const {
    BRASA_CHECK(depth_ > 0, source_, ": the header must be a JSON object, got ", got);
    BRASA_CHECK(depth_ > 1, where(),
                in_metadata_ ? "must be an object of strings" : "expected dtype, shape and data_offsets", ", got ",
                got);
  }
  bool other(const std::string& v) {
    value("a number");
    if (in_list_) fail(str(where(), "a number of ", item_, " must be a non-negative integer, got ", v));
    fail(str(where(), in_metadata_ || item_ == "dtype" ? "must be a string" : "must be a list", ", got ", v));
  }
  bool* seen() {
    bool* which = item_ == "dtype"          ? &has_dtype_
                  : item_ == "shape"        ? &has_shape_
                  : item_ == "data_offsets" ? &has_place_
                                            : nullptr;
    BRASA_CHECK(which, where(), "expected dtype, shape and data_offsets, got '", item_, "'");
    return which;
  }
  void add() {
    BRASA_CHECK(has_dtype_ && has_shape_ && has_place_, where(), "expected dtype, shape and data_offsets");
    Entry& e = tensor_.entry;
    uint64_t bytes = bytes_;
    bool overflow = false;
    for (int64_t n : e.shape) overflow |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes);
    if (std::find(e.shape.begin(), e.shape.end(), 0) != e.shape.end()) bytes = 0, overflow = false;
    auto [begin, end] = std::pair(tensor_.begin, tensor_.end);
    BRASA_CHECK(begin <= end && end <= data_.size(), where(), "data_offsets [", begin, ", ", end,
                "] do not lie in the file's ", data_.size(), " bytes of data");
    BRASA_CHECK(!overflow && bytes == end - begin, where(), e.format, e.shape, " does not fit its ", end - begin,
                " bytes");
    e.name = name_;
    e.data = data_.subspan(begin, end - begin);
    out_.tensors.push_back(std::move(tensor_));
  }

  std::span<const std::byte> data_;
  const std::string& source_;
  Header& out_;
  int depth_ = 0;  // of objects
  bool has_metadata_ = false, in_metadata_ = false, in_list_ = false, has_dtype_ = false, has_shape_ = false,
       has_place_ = false;
  std::string name_, item_;
  std::unordered_set<std::string> metadata_keys_;
  std::vector<uint64_t> list_;
  Placed tensor_{};
  uint64_t bytes_ = 0;  // of an element
};

}  // namespace

Header parse_header(std::string_view text, std::span<const std::byte> data, const std::string& source) {
  // The JSON parser would skip a mark of the order of bytes.
  BRASA_CHECK(text.starts_with('{'), source, ": the header must be a JSON object, which begins with '{'");
  Header out;
  Reader reader(data, source, out);
  Json::sax_parse(text, &reader);
  return out;
}

}  // namespace brasa::safetensors
