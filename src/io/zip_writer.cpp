#include "io/zip.h"
#include "support/error.h"

namespace brasa::io {
namespace {

constexpr size_t kAlignment = 64, kLocalSize = 30;
constexpr uint16_t kVersion = 45, kUtf8 = 1 << 11, kDay = 1 << 5 | 1;  // the 1st of January 1980

// Numbers in the format's order of bytes, one after the other.
struct Bytes {
  std::string text;
  template <class T>
  Bytes& put(T v) {
    for (size_t i = 0; i < sizeof(T); ++i) text += static_cast<char>(v >> (8 * i) & 0xff);
    return *this;
  }
};

uint32_t narrow(uint64_t v, uint64_t wide_from) { return v >= wide_from ? 0xffffffff : static_cast<uint32_t>(v); }

}  // namespace

void ZipWriter::emit(const std::string& bytes) {
  sink_(bytes.data(), bytes.size());
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::string_view text) {
  add(name, std::as_bytes(std::span(text.data(), text.size())));
}

void ZipWriter::add(const std::string& name, Pieces pieces) {
  BRASA_CHECK(name.size() <= 0xffff, "a zip archive: a record's name has ", name.size(), " bytes, 65535 at most");
  uint32_t crc = 0;
  uint64_t bytes = 0;
  for (std::span<const std::byte> piece : pieces) {
    crc = zip_checksum(piece, crc);
    bytes += piece.size();
  }
  records_.push_back({name, crc, bytes, at_});
  bool wide = bytes >= wide_from_;
  Bytes extra;
  if (wide) extra.put(uint16_t{1}).put(uint16_t{16}).put(bytes).put(bytes);
  // PyTorch's own field, "FB", moves the data to a multiple of 64.
  size_t begin = at_ + kLocalSize + name.size() + extra.text.size() + 4;
  size_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  extra.put(uint16_t{0x4246}).put(static_cast<uint16_t>(padding)).text.append(padding, 'Z');

  uint32_t size = narrow(bytes, wide_from_);
  Bytes header;
  header.put(uint32_t{0x04034b50}).put(kVersion).put(kUtf8).put(uint16_t{0}).put(uint16_t{0}).put(kDay);
  header.put(records_.back().crc).put(size).put(size);
  header.put(static_cast<uint16_t>(name.size())).put(static_cast<uint16_t>(extra.text.size()));
  emit(header.text + name + extra.text);
  for (std::span<const std::byte> piece : pieces) sink_(piece.data(), piece.size());
  at_ += bytes;
}

void ZipWriter::finish() {
  uint64_t begin = at_;
  for (const Record& r : records_) {
    Bytes extra;
    if (r.size >= wide_from_) extra.put(r.size).put(r.size);
    if (r.header >= wide_from_) extra.put(r.header);
    Bytes entry;
    entry.put(uint32_t{0x02014b50}).put(kVersion).put(kVersion).put(kUtf8).put(uint16_t{0}).put(uint16_t{0}).put(kDay);
    entry.put(r.crc).put(narrow(r.size, wide_from_)).put(narrow(r.size, wide_from_));
    entry.put(static_cast<uint16_t>(r.name.size()));
    entry.put(static_cast<uint16_t>(extra.text.empty() ? 0 : extra.text.size() + 4));
    entry.put(uint16_t{0}).put(uint16_t{0}).put(uint16_t{0}).put(uint32_t{0}).put(narrow(r.header, wide_from_));
    entry.text += r.name;
    if (!extra.text.empty()) {
      entry.put(uint16_t{1}).put(static_cast<uint16_t>(extra.text.size()));
      entry.text += extra.text;
    }
    emit(entry.text);
  }
  uint64_t size = at_ - begin, count = records_.size();
  bool wide = begin >= wide_from_ || size >= wide_from_ || count >= 0xffff;
  Bytes end;
  if (wide) {
    uint64_t at = at_;
    end.put(uint32_t{0x06064b50}).put(uint64_t{44}).put(kVersion).put(kVersion).put(uint32_t{0}).put(uint32_t{0});
    end.put(count).put(count).put(size).put(begin);
    end.put(uint32_t{0x07064b50}).put(uint32_t{0}).put(at).put(uint32_t{1});
  }
  auto few = static_cast<uint16_t>(wide ? 0xffff : count);
  end.put(uint32_t{0x06054b50}).put(uint16_t{0}).put(uint16_t{0}).put(few).put(few);
  end.put(wide ? 0xffffffff : static_cast<uint32_t>(size)).put(wide ? 0xffffffff : static_cast<uint32_t>(begin));
  end.put(uint16_t{0});
  emit(end.text);
}

}  // namespace brasa::io
