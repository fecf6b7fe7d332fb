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
  /// `script`: what has no form in an archive is left out, since the code that would use it does not run.
  Collector(size_t file_bytes, bool script, const std::string& source)
      : left_(64 * file_bytes), script_(script), source_(source) {}

  void collect(const Value& v, const std::string& name) {
    // A file may refer to one dictionary again and again; what it then stands for has no bound but this.
    BRASA_CHECK(left_ > name.size(), source_, ": its names are longer than the file");
    left_ -= name.size() + 1;
    if (v.is_tensor()) {
      out.tensors.emplace(name, v.to_tensor());
      out.order.add(name);
    } else if (v.kind() == Value::Kind::Object || v.is_dict()) {
      for (const auto& [key, item] : v.pairs()) {
        if (!key.is_string() && script_) continue;
        BRASA_CHECK(key.is_string(), source_, ": a key below '", name, "' is a ", key.kind_name(), ", not a name");
        collect(item, name.empty() ? key.text() : name + "." + key.text());
      }
    } else if (auto text = text_of(v)) {
      out.texts.emplace(name, *text);
      out.order.add(name);
    } else if (v.is_sequence() && script_) {
      for (size_t i = 0; i < v.items().size(); ++i) collect(v.items()[i], str(name, ".", i));
    } else if (!v.is_none() && !script_) {
      fail(str(source_, ": '", name, "' is a ", v.kind_name(), "; an archive holds tensors, numbers and texts"));
    }
  }

  serialize::Contents out;

 private:
  size_t left_;
  bool script_;
  const std::string& source_;
};

}  // namespace

bool looks_like_checkpoint(std::span<const std::byte> bytes) {
  // The first eight bytes of a safetensors file are the length of its header.
  bool pickle = bytes.size() >= 2 && bytes[0] == std::byte{0x80} && bytes[1] <= std::byte{5};
  return looks_like_zip(bytes) || (pickle && (bytes.size() < 9 || bytes[8] != std::byte{'{'}));
}

serialize::Contents contents_of_checkpoint(std::span<const std::byte> bytes, const std::string& source) {
  return contents_of_value(pickle::parse(bytes, source), bytes.size(), source);
}

serialize::Contents contents_of_value(const Value& root, size_t file_bytes, const std::string& source) {
  if (is_libtorch_optimizer(root)) return contents_of_optimizer(root, file_bytes, source);
  Collector collector(file_bytes, root.kind() == Value::Kind::Object, source);
  collector.collect(root, "");
  return std::move(collector.out);
}

}  // namespace brasa::io
