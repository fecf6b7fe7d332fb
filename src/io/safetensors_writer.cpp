#include <brasa/safetensors.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/safetensors_format.h"
#include "support/error.h"
#include "support/output_file.h"

namespace brasa::safetensors {

namespace {

// Where several have one name: that name.
const std::string_view* repeated(std::vector<std::string_view>& names) {
  if (!std::is_sorted(names.begin(), names.end())) std::sort(names.begin(), names.end());
  auto it = std::adjacent_find(names.begin(), names.end());
  return it == names.end() ? nullptr : &*it;
}

// Names are plain mostly; what has to be escaped or may be no UTF-8 is the JSON library's.
void append_quoted(std::string& text, const std::string& name) {
  bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  text += plain ? str('"', name, '"') : nlohmann::json(name).dump();
}

}  // namespace

void write(const Sink& sink, std::span<const Entry> entries, const Metadata& metadata, const std::string& path) {
  // Wide elements first, so that every tensor is aligned for its dtype without holes.
  std::vector<const Entry*> order;
  for (const Entry& e : entries) order.push_back(&e);
  for (const Entry* e : order) {
    BRASA_CHECK(e->dtype && !info_of(*e->dtype).file_name.empty(), path, ": tensor '", e->name,
                "': safetensors has no dtype ", e->dtype ? name(*e->dtype) : "for it");
    BRASA_CHECK(e->name != "__metadata__", path, ": a tensor cannot have the name __metadata__");
    int64_t bytes = size_of(*e->dtype);
    for (int64_t n : e->shape) bytes *= n;
    BRASA_CHECK(bytes == static_cast<int64_t>(e->data.size()), path, ": tensor '", e->name, "': ", name(*e->dtype),
                e->shape, " needs ", bytes, " bytes, got ", e->data.size());
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry* a, const Entry* b) { return size_of(*a->dtype) > size_of(*b->dtype); });

  std::vector<std::string_view> names;
  for (const Entry& e : entries) names.push_back(e.name);
  const std::string_view* twice = repeated(names);
  BRASA_CHECK(!twice, path, ": two tensors are named '", *twice, "'");

  std::string text = "{";
  uint64_t offset = 0;
  try {
    if (!metadata.empty()) text += str("\"__metadata__\":", nlohmann::json(metadata).dump());
    for (const Entry* e : order) {
      if (text.size() > 1) text += ',';
      append_quoted(text, e->name);
      text += str(":{\"dtype\":\"", info_of(*e->dtype).file_name, "\",\"shape\":", e->shape, ",\"data_offsets\":[",
                  offset, ",", offset + e->data.size(), "]}");
      offset += e->data.size();
    }
  } catch (const nlohmann::json::exception& e) {
    fail(str(path, ": a name or the metadata is not UTF-8: ", e.what()));
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');

  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(text.size() >> (8 * i));
  sink(length, sizeof length);
  sink(text.data(), text.size());
  for (const Entry* e : order) sink(e->data.data(), e->data.size());
}

void write(const std::string& path, std::span<const Entry> entries, const Metadata& metadata) {
  OutputFile file(path);
  write([&](const void* data, size_t size) { file.write(data, size); }, entries, metadata, path);
  file.commit();
}

}  // namespace brasa::safetensors
