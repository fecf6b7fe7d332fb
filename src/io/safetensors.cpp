#include <brasa/safetensors.h>

#include <algorithm>
#include <tuple>

#include "io/safetensors_header.h"
#include "support/error.h"
#include "support/mapped_file.h"

namespace brasa::safetensors {

constexpr uint64_t kMaxHeader = 100'000'000;  // the limit of the format's own library

File File::parse(std::span<const std::byte> bytes, const std::string& source) {
  BRASA_CHECK(bytes.size() >= 8, source, ": not a safetensors file: ", bytes.size(), " bytes, at least 8 expected");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint64_t>(bytes[static_cast<size_t>(i)]);
  BRASA_CHECK(length <= kMaxHeader && length <= bytes.size() - 8, source, ": the header's length ", length,
              " does not fit a file of ", bytes.size(), " bytes");
  std::span<const std::byte> data = bytes.subspan(8 + length);
  Header header = parse_header({reinterpret_cast<const char*>(bytes.data()) + 8, length}, data, source);

  File file;
  file.source_ = source;
  file.metadata_ = std::move(header.metadata);
  std::vector<Placed>& placed = header.tensors;
  auto before = [](const Placed& a, const Placed& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); };
  if (!std::is_sorted(placed.begin(), placed.end(), before)) std::stable_sort(placed.begin(), placed.end(), before);
  file.entries_.reserve(placed.size());
  uint64_t covered = 0;
  for (Placed& p : placed) {
    // Most files have their names in order, so that each goes behind the last.
    size_t known = file.by_name_.size();
    file.by_name_.emplace_hint(file.by_name_.end(), p.entry.name, file.entries_.size());
    BRASA_CHECK(file.by_name_.size() > known, source, ": the header has the key '", p.entry.name, "' twice");
    BRASA_CHECK(p.begin == covered, source, ": tensor '", p.entry.name, "' begins at byte ", p.begin, ", ",
                p.begin < covered ? "inside the one before it" : "after a hole", "; expected ", covered);
    covered = p.end;
    file.entries_.push_back(std::move(p.entry));
  }
  BRASA_CHECK(covered == data.size(), source, ": ", data.size(), " bytes of data, but the tensors take ", covered);
  return file;
}

File File::open(const std::string& path) {
  MappedFile mapped = map_file(path);
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
