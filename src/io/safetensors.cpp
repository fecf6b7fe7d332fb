#include "io/safetensors.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "support/error.h"

namespace brasa::io {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::pair<std::string_view, DType> kNames[] = {
    {"F64", DType::Float64}, {"F32", DType::Float32}, {"F16", DType::Float16}, {"BF16", DType::BFloat16},
    {"I64", DType::Int64},   {"I32", DType::Int32},   {"I16", DType::Int16},   {"I8", DType::Int8},
    {"U8", DType::UInt8},    {"BOOL", DType::Bool},   {"C64", DType::Complex64}};

std::optional<DType> dtype_named(std::string_view text) {
  for (auto& [name, dtype] : kNames)
    if (name == text) return dtype;
  return std::nullopt;
}

std::string_view name_of(DType t) {
  for (auto& [name, dtype] : kNames)
    if (dtype == t) return name;
  fail(str("safetensors has no name for ", brasa::name(t)));
}

constexpr uint64_t kLargestHeader = 100'000'000;

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : name_(path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  BRASA_CHECK(in, "cannot open '", path, "': ", std::strerror(errno));
  bytes_.resize(static_cast<size_t>(in.tellg()));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes_.data()), static_cast<std::streamsize>(bytes_.size()));
  BRASA_CHECK(in.good() || bytes_.empty(), "cannot read '", path, "'");
  read();
}

SafetensorsFile::SafetensorsFile(std::vector<std::byte> bytes, std::string name)
    : name_(std::move(name)), bytes_(std::move(bytes)) {
  read();
}

void SafetensorsFile::read() {
  using nlohmann::json;
  BRASA_CHECK(bytes_.size() >= 8, name_, ": a safetensors file has at least 8 bytes, this one ", bytes_.size());
  uint64_t header = 0;
  std::memcpy(&header, bytes_.data(), 8);
  BRASA_CHECK(header <= kLargestHeader && header <= bytes_.size() - 8, name_, ": the header says ", header,
              " bytes, the file has ", bytes_.size());
  auto* text = reinterpret_cast<const char*>(bytes_.data()) + 8;
  json j = json::parse(text, text + header, nullptr, false);
  BRASA_CHECK(j.is_object(), name_, ": the header is not a JSON object");
  std::span<const std::byte> body = std::span(bytes_).subspan(8 + header);

  for (auto& [key, item] : j.items()) {
    BRASA_CHECK(item.is_object(), name_, ": '", key, "' is not an object");
    if (key == "__metadata__") {
      for (auto& [k, v] : item.items()) {
        BRASA_CHECK(v.is_string(), name_, ": metadata '", k, "' is not text");
        metadata_[k] = v.get<std::string>();
      }
      continue;
    }
    auto field = [&](const char* f) -> const json& {
      BRASA_CHECK(item.contains(f), name_, ": '", key, "' has no ", f);
      return item.at(f);
    };
    const json &dtype = field("dtype"), &shape = field("shape"), &offsets = field("data_offsets");
    BRASA_CHECK(dtype.is_string() && shape.is_array() && offsets.is_array() && offsets.size() == 2 &&
                    offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned(),
                name_, ": '", key, "' is malformed");
    auto known = dtype_named(dtype.get_ref<const std::string&>());
    BRASA_CHECK(known, name_, ": '", key, "' has the unsupported dtype ", dtype.get_ref<const std::string&>());
    StoredTensor t;
    t.dtype = *known;
    uint64_t size = static_cast<uint64_t>(size_of(t.dtype));
    bool fits = true;
    for (const json& s : shape) {
      BRASA_CHECK(s.is_number_unsigned(), name_, ": '", key, "' has a size that is no natural number");
      auto n = s.get<uint64_t>();
      fits = fits && n <= uint64_t{std::numeric_limits<int64_t>::max()} && !__builtin_mul_overflow(size, n, &size);
      t.shape.push_back(static_cast<int64_t>(n));
    }
    auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
    BRASA_CHECK(fits && begin <= end && end <= body.size() && end - begin == size, name_, ": '", key, "' claims bytes ",
                begin, " to ", end, " of ", body.size(), " for shape ", t.shape);
    t.data = body.subspan(begin, size);
    tensors_.emplace(key, std::move(t));
  }
}

const StoredTensor& SafetensorsFile::at(std::string_view name) const {
  auto it = tensors_.find(name);
  BRASA_CHECK(it != tensors_.end(), name_, ": there is no tensor '", name, "'");
  return it->second;
}

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string, std::less<>>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const NamedTensor& t : tensors) {
    BRASA_CHECK(!header.contains(t.name), path, ": two tensors are named '", t.name, "'");
    header[t.name] = {{"dtype", name_of(t.tensor.dtype)},
                      {"shape", t.tensor.shape},
                      {"data_offsets", {at, at + t.tensor.data.size()}}};
    at += t.tensor.data.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // tensors start aligned
  std::string beside = str(path, ".", static_cast<int64_t>(getpid()), ".part");
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  uint64_t length = text.size();
  out.write(reinterpret_cast<const char*>(&length), 8);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  for (const NamedTensor& t : tensors)
    out.write(reinterpret_cast<const char*>(t.tensor.data.data()), static_cast<std::streamsize>(t.tensor.data.size()));
  out.close();
  bool done = out.good() && std::rename(beside.c_str(), path.c_str()) == 0;
  if (!done) {
    int why = errno;
    std::remove(beside.c_str());
    fail(str("cannot write '", path, "': ", std::strerror(why)));
  }
}

}  // namespace brasa::io
