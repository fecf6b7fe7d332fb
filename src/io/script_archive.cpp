#include <brasa/pickle.h>

#include "io/tensors.h"
#include "io/zip.h"
#include "support/error.h"

namespace brasa::io {
namespace {

using pickle::Value;

// Numbers and texts in the form that an archive keeps them in (tensor/archive.cpp).
std::optional<std::string> text_of(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::Int: return str("int ", v.to_int());
    case Value::Kind::Float: return str("double ", v.to_double());
    case Value::Kind::Bool: return str("bool ", v.to_bool() ? 1 : 0);
    case Value::Kind::String: return "string " + v.text();
    default: return std::nullopt;
  }
}

class Collector {
 public:
  Collector(size_t file_bytes, const std::string& source) : left_(64 * file_bytes), source_(source) {}

  void collect(const Value& v, const std::string& name) {
    // A file may refer to one dictionary again and again; what it then stands for has no bound but this.
    BRASA_CHECK(left_ > name.size(), source_, ": its names are longer than the file");
    left_ -= name.size() + 1;
    if (v.is_tensor()) {
      out.tensors.emplace(name, v.to_tensor());
    } else if (v.kind() == Value::Kind::Object || v.is_dict()) {
      for (const auto& [key, item] : v.pairs()) {
        BRASA_CHECK(key.is_string(), source_, ": a key below '", name, "' is a ", key.kind_name(), ", not a name");
        collect(item, name.empty() ? key.text() : name + "." + key.text());
      }
    } else if (auto text = text_of(v)) {
      out.texts.emplace(name, *text);
    } else if (!v.is_none()) {
      fail(str(source_, ": '", name, "' is a ", v.kind_name(), "; an archive holds tensors, numbers and texts"));
    }
  }

  serialize::Contents out;

 private:
  size_t left_;
  const std::string& source_;
};

}  // namespace

bool looks_like_checkpoint(std::span<const std::byte> bytes) {
  // The first eight bytes of a safetensors file are the length of its header.
  bool pickle = bytes.size() >= 2 && bytes[0] == std::byte{0x80} && bytes[1] <= std::byte{5};
  return looks_like_zip(bytes) || (pickle && (bytes.size() < 9 || bytes[8] != std::byte{'{'}));
}

serialize::Contents contents_of_checkpoint(std::span<const std::byte> bytes, const std::string& source) {
  Value root = pickle::parse(bytes, source);
  if (is_libtorch_optimizer(root)) return contents_of_optimizer(root, bytes.size(), source);
  Collector collector(bytes.size(), source);
  collector.collect(root, "");
  return std::move(collector.out);
}

}  // namespace brasa::io
