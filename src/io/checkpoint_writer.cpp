#include <brasa/pickle.h>

#include "io/pickler.h"
#include "io/zip.h"
#include "support/output_file.h"

namespace brasa::io {

void add_checkpoint(ZipWriter& zip, Pickler& pickler, const pickle::Value& value) {
  zip.add("archive/data.pkl", pickler.dump(value));
  zip.add("archive/byteorder", "little");
  for (size_t i = 0; i < pickler.storages().size(); ++i) {
    const StorageRef& s = pickler.storages()[i];
    zip.add("archive/data/" + std::to_string(i), {static_cast<const std::byte*>(s->data()), s->bytes()});
  }
  zip.add("archive/version", "3\n");
}

}  // namespace brasa::io

namespace brasa::pickle {
namespace {

void write(const Value& value, const io::ZipWriter::Sink& sink) {
  io::Pickler pickler;
  io::ZipWriter zip(sink);
  add_checkpoint(zip, pickler, value);
  zip.finish();
}

}  // namespace

void save(const Value& value, const std::string& path) {
  OutputFile file(path);
  write(value, [&](const void* data, size_t size) { file.write(data, size); });
  file.commit();
}

std::string dump(const Value& value) {
  std::string out;
  write(value, [&](const void* data, size_t size) { out.append(static_cast<const char*>(data), size); });
  return out;
}

}  // namespace brasa::pickle
