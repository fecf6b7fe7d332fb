#include <brasa/safetensors.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "io/mapped_file.h"
#include "io/safetensors_format.h"
#include "support/error.h"

namespace brasa::safetensors {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // the limit of the format's own library

// What the format allows nests three deep; a name given twice would silently lose the first tensor.
Json parse_header(std::string_view text, const std::string& source) {
  std::vector<std::set<std::string>> keys;
  auto visit = [&](int depth, Json::parse_event_t event, Json& value) {
    BRASA_CHECK(depth <= 3, source, ": the header nests deeper than a safetensors header may");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      BRASA_CHECK(keys.back().insert(key).second, source, ": the header has the key '", key, "' twice");
    }
    return true;
  };
  try {
    return Json::parse(text, visit);
  } catch (const Json::exception& e) {
    fail(str(source, ": the header is not JSON: ", e.what()));
  }
}

uint64_t unsigned_of(const Json& v, const std::string& where) {
  BRASA_CHECK(v.is_number_unsigned(), where, " must be a non-negative integer, got ", v.dump());
  return v.get<uint64_t>();
}

struct Placed {
  Entry entry;
  uint64_t begin, end;
};

Placed read_entry(const std::string& name, const Json& item, std::span<const std::byte> data,
                  const std::string& source) {
  std::string where = str(source, ": tensor '", name, "': ");
  BRASA_CHECK(item.is_object() && item.size() == 3 && item.contains("dtype") && item.contains("shape") &&
                  item.contains("data_offsets"),
              where, "expected dtype, shape and data_offsets");
  const Json &dtype = item["dtype"], &shape = item["shape"], &offsets = item["data_offsets"];
  BRASA_CHECK(dtype.is_string(), where, "dtype must be a string");
  std::optional<Format> format = format_named(dtype.get_ref<const std::string&>());
  BRASA_CHECK(format, where, "unknown dtype '", dtype.get_ref<const std::string&>(), "'");
  BRASA_CHECK(shape.is_array(), where, "shape must be a list");
  BRASA_CHECK(offsets.is_array() && offsets.size() == 2, where, "data_offsets must be a list of two");

  Placed out;
  out.entry.name = name;
  out.entry.format = format->name;
  out.entry.dtype = format->dtype;
  uint64_t bytes = static_cast<uint64_t>(format->bytes);
  bool overflow = false;
  for (const Json& size : shape) {
    uint64_t n = unsigned_of(size, str(where, "a size"));
    BRASA_CHECK(n <= static_cast<uint64_t>(INT64_MAX), where, "size ", n, " is too large");
    overflow |= __builtin_mul_overflow(bytes, n, &bytes);
    out.entry.shape.push_back(static_cast<int64_t>(n));
  }
  if (std::find(out.entry.shape.begin(), out.entry.shape.end(), 0) != out.entry.shape.end())
    bytes = 0, overflow = false;
  out.begin = unsigned_of(offsets[0], str(where, "data_offsets[0]"));
  out.end = unsigned_of(offsets[1], str(where, "data_offsets[1]"));
  BRASA_CHECK(out.begin <= out.end && out.end <= data.size(), where, "data_offsets [", out.begin, ", ", out.end,
              "] do not lie in the file's ", data.size(), " bytes of data");
  BRASA_CHECK(!overflow && bytes == out.end - out.begin, where, format->name, out.entry.shape, " does not fit its ",
              out.end - out.begin, " bytes");
  out.entry.data = data.subspan(out.begin, out.end - out.begin);
  return out;
}

}  // namespace

File File::parse(std::span<const std::byte> bytes, const std::string& source) {
  BRASA_CHECK(bytes.size() >= 8, source, ": not a safetensors file: ", bytes.size(), " bytes, at least 8 expected");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint64_t>(bytes[static_cast<size_t>(i)]);
  BRASA_CHECK(length <= kMaxHeader && length <= bytes.size() - 8, source, ": the header's length ", length,
              " does not fit a file of ", bytes.size(), " bytes");
  Json header = parse_header({reinterpret_cast<const char*>(bytes.data()) + 8, length}, source);
  BRASA_CHECK(header.is_object(), source, ": the header must be a JSON object");
  std::span<const std::byte> data = bytes.subspan(8 + length);

  File file;
  file.source_ = source;
  std::vector<Placed> placed;
  for (const auto& [name, item] : header.items()) {
    if (name != "__metadata__") {
      placed.push_back(read_entry(name, item, data, source));
      continue;
    }
    BRASA_CHECK(item.is_object(), source, ": __metadata__ must be an object of strings");
    for (const auto& [key, value] : item.items()) {
      BRASA_CHECK(value.is_string(), source, ": __metadata__['", key, "'] must be a string");
      file.metadata_[key] = value.get<std::string>();
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (Placed& p : placed) {
    BRASA_CHECK(p.begin == covered, source, ": tensor '", p.entry.name, "' begins at byte ", p.begin, ", ",
                p.begin < covered ? "inside the one before it" : "after a hole", "; expected ", covered);
    covered = p.end;
    file.by_name_.emplace(p.entry.name, file.entries_.size());
    file.entries_.push_back(std::move(p.entry));
  }
  BRASA_CHECK(covered == data.size(), source, ": ", data.size(), " bytes of data, but the tensors take ", covered);
  return file;
}

File File::open(const std::string& path) {
  io::MappedFile mapped = io::map_file(path);
  File file = parse(mapped.bytes, path);
  file.mapping_ = std::move(mapped.owner);
  return file;
}

const Entry* File::find(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &entries_[it->second];
}

const Entry& File::at(std::string_view name) const {
  if (const Entry* entry = find(name)) return *entry;
  std::vector<std::string> names;
  for (const auto& [key, index] : by_name_) {
    if (names.size() == 20) {
      names.push_back("…");
      break;
    }
    names.push_back(key);
  }
  fail(str(source_, ": there is no tensor '", name, "' among the ", entries_.size(), ": ", names));
}

}  // namespace brasa::safetensors
