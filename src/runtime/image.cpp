#include "runtime/image.h"

#include <cstring>

#include "support/byte_reader.h"
#include "support/error.h"
#include "support/hash.h"

namespace brasa::runtime {
namespace {

constexpr char kMagic[8] = {'B', 'R', 'A', 'S', 'A', 'K', '0', '1'};

struct Header {
  char magic[8];
  uint64_t checksum;  // of everything after this field
  uint64_t size;      // of all bytes
  uint32_t target_size;
  uint32_t entry_count;
  uint64_t code_size;
};

void put(std::string& out, const void* data, size_t size) { out.append(static_cast<const char*>(data), size); }

}  // namespace

std::string KernelImage::serialize() const {
  std::string out;
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.target_size = static_cast<uint32_t>(target.size());
  h.entry_count = static_cast<uint32_t>(entries.size());
  h.code_size = code.size();
  put(out, &h, sizeof h);
  out += target;
  for (const KernelEntry& e : entries) {
    put(out, &e.offset, sizeof e.offset);
    auto size = static_cast<uint32_t>(e.name.size());
    put(out, &size, sizeof size);
    out += e.name;
  }
  put(out, code.data(), code.size());
  uint64_t size = out.size();
  std::memcpy(out.data() + offsetof(Header, size), &size, sizeof size);
  size_t after = offsetof(Header, size);
  uint64_t checksum = hash_bytes(out.data() + after, out.size() - after);
  std::memcpy(out.data() + offsetof(Header, checksum), &checksum, sizeof checksum);
  return out;
}

KernelImage KernelImage::parse(std::string_view bytes) {
  ByteReader in(bytes, "kernel image: it ends too early");
  auto h = in.number<Header>();
  BRASA_CHECK(std::memcmp(h.magic, kMagic, sizeof kMagic) == 0, "kernel image: not one, or of another version");
  BRASA_CHECK(h.size == bytes.size(), "kernel image: ", bytes.size(), " bytes where its header says ", h.size);
  size_t after = offsetof(Header, size);
  BRASA_CHECK(hash_bytes(bytes.data() + after, bytes.size() - after) == h.checksum, "kernel image: wrong checksum");
  KernelImage image;
  image.target = in.take(h.target_size);
  for (uint32_t i = 0; i < h.entry_count; ++i) {
    KernelEntry e;
    e.offset = in.number<uint64_t>();
    e.name = in.take(in.number<uint32_t>());
    image.entries.push_back(std::move(e));
  }
  std::string_view code = in.take(h.code_size);
  image.code.assign(code.begin(), code.end());
  return image;
}

}  // namespace brasa::runtime
