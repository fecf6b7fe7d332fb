#include <algorithm>
#include <charconv>
#include <map>

#include <brasa/pickle.h>

#include "io/unpickler.h"
#include "io/zip.h"
#include "support/error.h"
#include "support/mapped_file.h"

// The two forms of a checkpoint: how each holds the pickle, and the storages that the pickle names.
namespace brasa::pickle {
namespace {

using Bytes = std::span<const std::byte>;

// A storage whose numbers have their highest byte first.
StorageRef turned(Bytes bytes, size_t number) {
  StorageRef out = io::storage_of(bytes);
  auto* data = static_cast<std::byte*>(out->data());
  for (size_t i = 0; i + number <= bytes.size(); i += number) std::reverse(data + i, data + i + number);
  return out;
}

// TorchScript's code names tensors of its own by these names; a frozen module has no others.
Value with_constants(const Value& module, const Value& constants) {
  if (constants.kind() != Value::Kind::Tuple || constants.items().empty()) return module;
  Value::Pairs named, attributes = module.pairs();
  for (const Value& c : constants.items()) named.emplace_back(str("c", named.size()), c);
  attributes.emplace_back("CONSTANTS", Value::object("", std::move(named)));
  return Value::object(module.text(), std::move(attributes));
}

// Versions 1 to 10 are those that PyTorch 2.15 knows.
void check_version(const io::ZipReader& zip, const std::string& folder, const std::string& source) {
  constexpr int kNewest = 10;
  std::string record = folder + (zip.has(folder + ".data/version") ? ".data/version" : "version");
  BRASA_CHECK(zip.has(record), source, ": no checkpoint: a zip archive without '", record, "'");
  std::string text = zip.text(record);
  int version = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  bool number =
      error == std::errc() && text.find_first_not_of(" \r\n", static_cast<size_t>(end - text.data())) == text.npos;
  BRASA_CHECK(number && version >= 1 && version <= kNewest, source, ": its version is '", text,
              "', expected a number from 1 to ", kNewest);
}

// <name>/data.pkl, <name>/data/<key> and some facts beside them.
Value parse_zip(Bytes bytes, const std::string& source, const std::shared_ptr<const void>& owner) {
  io::ZipReader zip(bytes, source);
  BRASA_CHECK(!zip.names().empty(), source, ": an empty zip archive");
  const std::string& first = zip.names()[0];
  std::string folder = first.substr(0, first.find('/') + 1);
  BRASA_CHECK(zip.has(folder + "data.pkl"), source, ": no checkpoint: a zip archive without '", folder, "data.pkl'");
  check_version(zip, folder, source);
  std::string order = zip.has(folder + "byteorder") ? zip.text(folder + "byteorder") : "little";
  BRASA_CHECK(order == "little" || order == "big", source, ": its byte order is '", order, "', not little or big");

  bool script = zip.has(folder + "constants.pkl");
  // The value of <name>.pkl, whose storages are <name>/<key>.
  auto value = [&](const std::string& name) {
    std::vector<std::byte> pickle;
    io::Unpickler unpickler(zip.read(folder + name + ".pkl", pickle), {.source = source, .objects = script});
    unpickler.run();
    std::vector<StorageRef> storages;
    for (const io::StorageRecord& s : unpickler.storages()) {
      std::vector<std::byte> inflated;
      Bytes data = zip.read(folder + name + "/" + s.key, inflated);
      BRASA_CHECK(data.size() == s.bytes, source, ": storage '", s.key, "' has ", data.size(),
                  " bytes, the pickle says ", s.bytes);
      storages.push_back(order == "big" ? turned(data, s.number)
                                        : io::storage_of(data, inflated.empty() ? owner : nullptr));
    }
    return unpickler.value(storages);
  };
  Value out = value("data");
  if (script && out.kind() == Value::Kind::Object) out = with_constants(out, value("constants"));
  return out;
}

// Pickles one after the other: a number that marks the format, its version, facts about the writer, the value, the keys of the
// storages; then for each of these its count of elements and its bytes.
class Legacy {
 public:
  Legacy(Bytes bytes, std::string source) : rest_(bytes), source_(std::move(source)) {}

  Value parse() {
    BRASA_CHECK(!rest_.empty() && rest_[0] == std::byte{0x80}, source_,
                ": no checkpoint: it begins neither as a zip archive nor as a pickle");
    Value magic = plain();
    BRASA_CHECK(magic.kind() == Value::Kind::BigInt && magic.text() == "119547037146038801333356", source_,
                ": no checkpoint: a pickle that does not begin with the number of PyTorch's older form");
    Value version = plain();
    BRASA_CHECK(version.kind() == Value::Kind::Int && version.to_int() == 1001, source_,
                ": not version 1001 of the older form of checkpoints");
    plain();  // facts about the writer's machine; the order of bytes does not depend on it

    io::Unpickler unpickler(rest_, {.source = source_});
    unpickler.run();
    rest_ = rest_.subspan(unpickler.consumed());
    std::map<std::string, StorageRef> read = storages(unpickler);
    std::vector<StorageRef> in_order;
    for (const io::StorageRecord& s : unpickler.storages()) {
      BRASA_CHECK(read.contains(s.key), source_, ": storage '", s.key, "' is not in the file");
      in_order.push_back(read[s.key]);
    }
    return unpickler.value(in_order);
  }

 private:
  Value plain() {
    io::Unpickler unpickler(rest_, {.source = source_});
    unpickler.run();
    rest_ = rest_.subspan(unpickler.consumed());
    BRASA_CHECK(unpickler.storages().empty(), source_, ": a tensor where none may be");
    return unpickler.value({});
  }

  std::map<std::string, StorageRef> storages(const io::Unpickler& unpickler) {
    std::map<std::string, uint64_t> sizes;
    for (const io::StorageRecord& s : unpickler.storages()) sizes[s.key] = s.bytes;
    Value keys = plain();
    BRASA_CHECK(keys.kind() == Value::Kind::List, source_, ": no list of storages");
    std::map<std::string, StorageRef> out;
    for (const Value& key : keys.items()) {
      BRASA_CHECK(key.is_string() && sizes.contains(key.text()), source_, ": a storage that no tensor has");
      uint64_t bytes = sizes[key.text()];
      BRASA_CHECK(rest_.size() >= 8 && rest_.size() - 8 >= bytes, source_, ": the file is cut off in storage '",
                  key.text(), "'");
      uint64_t count = 0;
      for (size_t i = 8; i-- > 0;) count = count << 8 | static_cast<uint64_t>(rest_[i]);
      BRASA_CHECK(count <= bytes && (count == 0 ? bytes == 0 : bytes % count == 0), source_, ": storage '", key.text(),
                  "' has ", count, " elements, the pickle says ", bytes, " bytes");
      out.emplace(key.text(), io::storage_of(rest_.subspan(8, bytes)));
      rest_ = rest_.subspan(8 + bytes);
    }
    return out;
  }

  Bytes rest_;
  std::string source_;
};

}  // namespace

Value parse(Bytes bytes, const std::string& source) {
  return io::looks_like_zip(bytes) ? parse_zip(bytes, source, nullptr) : Legacy(bytes, source).parse();
}

Value load(const std::string& path) {
  MappedFile file = map_file(path);
  return parse(file.bytes, path);
}

Value map(const std::string& path) {
  MappedFile file = map_file(path);
  BRASA_CHECK(io::looks_like_zip(file.bytes), path, ": only a zip archive's tensors can be used where they lie");
  return parse_zip(file.bytes, path, file.owner);
}

}  // namespace brasa::pickle
