#include <brasa/serialize.h>

#include <algorithm>
#include <istream>
#include <iterator>
#include <ostream>
#include <span>

#include <brasa/brasa.h>

#include "io/tensors.h"
#include "support/error.h"
#include "support/mapped_file.h"
#include "support/output_file.h"

namespace brasa {
namespace {

// The tensors' bytes, with what keeps them alive.
struct Held {
  std::vector<Tensor> tensors;
  std::vector<safetensors::Entry> entries;
};

Held hold(const TensorDict& tensors, const std::string& path) {
  Held out;
  for (const auto& [name, tensor] : tensors) {
    BRASA_CHECK(tensor.defined(), path, ": tensor '", name, "' is undefined");
    out.tensors.push_back(tensor.detach().cpu().contiguous());
    const Tensor& t = out.tensors.back();
    out.entries.push_back(
        {name, "", t.scalar_type(), t.sizes().vec(), {static_cast<const std::byte*>(t.const_data_ptr()), t.nbytes()}});
  }
  return out;
}

}  // namespace

void save_tensors(const TensorDict& tensors, const std::string& path, const safetensors::Metadata& metadata) {
  safetensors::write(path, hold(tensors, path).entries, metadata);
}

namespace serialize {

namespace {
// In the order of writing, within which the format wants wide elements first.
Held in_order(const Contents& contents, const std::string& path) {
  Held held = hold(contents.tensors, path);
  std::sort(held.entries.begin(), held.entries.end(), [&](const safetensors::Entry& a, const safetensors::Entry& b) {
    return contents.order.place(a.name) < contents.order.place(b.name);
  });
  return held;
}
}  // namespace

void OutputArchive::save_to(const std::string& filename, Form form) const {
  if (form == Form::Safetensors)
    return safetensors::write(filename, in_order(contents_, filename).entries, contents_.texts);
  OutputFile file(filename);
  io::write_script_archive(contents_, filename, [&](const void* data, size_t size) { file.write(data, size); });
  file.commit();
}
void OutputArchive::save_to(std::ostream& stream, Form form) const {
  auto write = [&](const void* data, size_t size) {
    return stream.write(static_cast<const char*>(data), static_cast<std::streamsize>(size)) ? size : 0;
  };
  save_to(write, form);
  BRASA_CHECK(stream.flush(), "archive: it could not be written");  // what fails later, nobody sees
}
void OutputArchive::save_to(const std::function<size_t(const void*, size_t)>& function, Form form) const {
  auto sink = [&](const void* data, size_t size) {
    BRASA_CHECK(function(data, size) == size, "archive: it could not be written");
  };
  if (form == Form::LibTorch) return io::write_script_archive(contents_, "archive", sink);
  Held held = in_order(contents_, "archive");
  safetensors::write(sink, held.entries, contents_.texts, "archive");
}

void InputArchive::load_from(const std::string& filename, std::optional<Device> device) {
  MappedFile file = map_file(filename);
  load(file.bytes, filename, device);
}
void InputArchive::load_from(std::istream& stream, std::optional<Device> device) {
  // The stream stays where it was, so that it can be read again.
  std::istream::pos_type start = stream.tellg();
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  stream.clear();
  if (start != std::istream::pos_type(-1)) stream.seekg(start);
  load_from(bytes.data(), bytes.size(), device);
}
void InputArchive::load_from(const char* data, size_t size, std::optional<Device> device) {
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  load(bytes, "archive", device);
}
void InputArchive::load_from(const std::function<size_t(uint64_t, void*, size_t)>& read,
                             const std::function<size_t()>& size, std::optional<Device> device) {
  std::string bytes(size(), 0);
  for (size_t at = 0; at < bytes.size();) {
    size_t got = read(at, bytes.data() + at, bytes.size() - at);
    BRASA_CHECK(got > 0, "archive: only ", at, " of ", bytes.size(), " bytes could be read");
    at += got;
  }
  load_from(bytes.data(), bytes.size(), device);
}
void InputArchive::load(std::span<const std::byte> bytes, const std::string& source, std::optional<Device> device) {
  auto contents = std::make_shared<Contents>();
  if (io::looks_like_checkpoint(bytes)) {
    *contents = io::contents_of_checkpoint(bytes, source);
  } else {
    safetensors::File file = safetensors::File::parse(bytes, source);
    contents->texts = file.metadata();
    for (const safetensors::Entry& entry : file.entries()) {
      contents->tensors.emplace(entry.name, io::tensor_of(entry, source));
      contents->order.add(entry.name);
    }
  }
  if (device)
    for (auto& [name, tensor] : contents->tensors) tensor = tensor.to(*device);
  contents_ = std::move(contents);
  prefix_.clear();
  source_ = source;
}

}  // namespace serialize

serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Tensor& tensor) {
  archive.write("0", tensor);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive, Tensor& tensor) {
  BRASA_CHECK(archive.keys().size() == 1, archive.source(), ": expected one tensor, found ", archive.keys().size());
  Tensor fresh;
  archive.read("0", fresh);
  tensor = fresh;
  return archive;
}

serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) archive.write(std::to_string(i), tensors[i]);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive, std::vector<Tensor>& tensors) {
  std::vector<Tensor> out(archive.keys().size());
  for (size_t i = 0; i < out.size(); ++i)
    BRASA_CHECK(archive.try_read(std::to_string(i), out[i]), archive.source(), ": it is no list of tensors: among its ",
                out.size(), " there is none named '", i, "'");
  tensors = std::move(out);
  return archive;
}

serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const OrderedDict<std::string, Tensor>& tensors) {
  for (const auto& item : tensors) archive.write(item.key(), item.value());
  return archive;
}

}  // namespace brasa
