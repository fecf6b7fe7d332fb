#include <zlib.h>

#include <algorithm>
#include <limits>

#include "io/zip.h"
#include "support/error.h"

// The format: PKWARE's APPNOTE.TXT, 4.3 (structure), 4.5.3 (64-bit extension).
namespace brasa::io {
namespace {

constexpr size_t kEndSize = 22, kEntrySize = 46, kLocalSize = 30, kLocatorSize = 20, kEnd64Size = 56;
constexpr uint64_t kMaxRatio = 1032;  // of deflate

template <class T>
T number_at(std::span<const std::byte> bytes, uint64_t at) {
  T v = 0;
  for (size_t i = sizeof(T); i-- > 0;) v = static_cast<T>(v << 8 | static_cast<T>(bytes[at + i]));
  return v;
}

bool has_at(std::span<const std::byte> bytes, uint64_t at, uint64_t size, uint32_t signature) {
  return at <= bytes.size() && bytes.size() - at >= size && number_at<uint32_t>(bytes, at) == signature;
}

struct Directory {
  uint64_t at, size, count;
};

Directory find_directory(std::span<const std::byte> bytes, const std::string& source) {
  BRASA_CHECK(bytes.size() >= kEndSize, source, ": no zip archive: ", bytes.size(), " bytes");
  uint64_t last = bytes.size() - kEndSize, first = last - std::min<uint64_t>(last, 65535), at = last + 1;
  while (at > first && !has_at(bytes, at - 1, kEndSize, 0x06054b50)) --at;
  BRASA_CHECK(at > first, source, ": a zip archive without a directory; it may be cut off");
  --at;
  Directory d{number_at<uint32_t>(bytes, at + 16), number_at<uint32_t>(bytes, at + 12),
              number_at<uint16_t>(bytes, at + 10)};
  if (at >= kLocatorSize && has_at(bytes, at - kLocatorSize, kLocatorSize, 0x07064b50)) {
    auto wide = number_at<uint64_t>(bytes, at - kLocatorSize + 8);
    BRASA_CHECK(has_at(bytes, wide, kEnd64Size, 0x06064b50), source, ": the zip directory's 64-bit form is malformed");
    d = {number_at<uint64_t>(bytes, wide + 48), number_at<uint64_t>(bytes, wide + 40),
         number_at<uint64_t>(bytes, wide + 32)};
  }
  BRASA_CHECK(d.at <= bytes.size() && d.size <= bytes.size() - d.at, source, ": the zip directory's ", d.size,
              " bytes at ", d.at, " do not lie in the file's ", bytes.size());
  return d;
}

// Replaces those of the three numbers that are all ones by the 64-bit ones of the extra field.
void widen(std::span<const std::byte> extra, uint64_t& size, uint64_t& stored, uint64_t& header) {
  while (extra.size() >= 4) {
    auto id = number_at<uint16_t>(extra, 0);
    size_t length = std::min<size_t>(number_at<uint16_t>(extra, 2), extra.size() - 4);
    std::span<const std::byte> body = extra.subspan(4, length);
    extra = extra.subspan(4 + length);
    if (id != 1) continue;
    for (uint64_t* number : {&size, &stored, &header}) {
      if (*number != 0xffffffff || body.size() < 8) continue;
      *number = number_at<uint64_t>(body, 0);
      body = body.subspan(8);
    }
  }
}

}  // namespace

bool looks_like_zip(std::span<const std::byte> bytes) { return has_at(bytes, 0, 4, 0x04034b50); }

uint32_t zip_checksum(std::span<const std::byte> data, uint32_t of_before) {
  if (data.empty()) return of_before;  // zlib begins anew at a null pointer
  return static_cast<uint32_t>(crc32_z(of_before, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

ZipReader::ZipReader(std::span<const std::byte> bytes, std::string source, Checksums checksums)
    : bytes_(bytes), source_(std::move(source)), checksums_(checksums) {
  Directory directory = find_directory(bytes, source_);
  std::span<const std::byte> rest = bytes.subspan(directory.at, directory.size);
  uint64_t taken = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    BRASA_CHECK(has_at(rest, 0, kEntrySize, 0x02014b50), source_, ": entry ", i, " of the zip directory is malformed");
    size_t name = number_at<uint16_t>(rest, 28), extra = number_at<uint16_t>(rest, 30),
           comment = number_at<uint16_t>(rest, 32);
    BRASA_CHECK(rest.size() - kEntrySize >= name + extra + comment, source_, ": entry ", i,
                " of the zip directory is cut off");
    auto method = number_at<uint16_t>(rest, 10);
    Record record{method == 8, number_at<uint32_t>(rest, 16), number_at<uint32_t>(rest, 42),
                  number_at<uint32_t>(rest, 20), number_at<uint32_t>(rest, 24)};
    std::string text(reinterpret_cast<const char*>(rest.data()) + kEntrySize, name);
    widen(rest.subspan(kEntrySize + name, extra), record.size, record.stored, record.header);
    BRASA_CHECK((number_at<uint16_t>(rest, 8) & 1) == 0, source_, ": record '", text, "' is encrypted");
    BRASA_CHECK(method == 0 || method == 8, source_, ": record '", text, "' has the unknown compression ",
                uint32_t{method});
    BRASA_CHECK(record.deflated ? record.size / kMaxRatio <= record.stored : record.size == record.stored, source_,
                ": record '", text, "' claims ", record.size, " bytes, which its ", record.stored,
                " bytes in the file cannot hold");
    // Together they fit, so that no part of the file is read twice.
    BRASA_CHECK(record.stored <= bytes.size() - taken, source_, ": record '", text, "' claims ", record.stored,
                " bytes, more than the file has beside the records before");
    taken += record.stored;
    BRASA_CHECK(records_.emplace(text, record).second, source_, ": two records have the name '", text, "'");
    names_.push_back(std::move(text));
    rest = rest.subspan(kEntrySize + name + extra + comment);
  }
}

std::span<const std::byte> ZipReader::stored_bytes(std::string_view name, const Record& record) const {
  BRASA_CHECK(has_at(bytes_, record.header, kLocalSize, 0x04034b50), source_, ": record '", name,
              "' is not where the zip directory says");
  uint64_t begin = record.header + kLocalSize + number_at<uint16_t>(bytes_, record.header + 26) +
                   number_at<uint16_t>(bytes_, record.header + 28);
  BRASA_CHECK(begin <= bytes_.size() && record.stored <= bytes_.size() - begin, source_, ": record '", name,
              "' ends beyond the file");
  return bytes_.subspan(begin, record.stored);
}

std::span<const std::byte> ZipReader::read(std::string_view name, std::vector<std::byte>& inflated) const {
  auto found = records_.find(name);
  BRASA_CHECK(found != records_.end(), source_, ": there is no record '", name, "'");
  const Record& record = found->second;
  bool as_stored = !record.deflated || record.size == 0;
  std::span<const std::byte> out =
      as_stored ? stored_bytes(name, record).first(record.size) : inflate(name, record, inflated);
  BRASA_CHECK(checksums_ == Checksums::Ignored || zip_checksum(out) == record.crc, source_, ": record '", name,
              "' is damaged: its bytes do not have their checksum");
  return out;
}

std::span<const std::byte> ZipReader::inflate(std::string_view name, const Record& record,
                                              std::vector<std::byte>& inflated) const {
  std::span<const std::byte> stored = stored_bytes(name, record);
  struct Stream : z_stream {
    ~Stream() { inflateEnd(this); }
  } z{};
  inflated.resize(record.size);
  BRASA_CHECK(inflateInit2(&z, -15) == Z_OK, source_, ": no memory to inflate '", name, "'");
  size_t from = 0, to = 0;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    constexpr size_t kMost = std::numeric_limits<uInt>::max();
    z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data())) + from;
    z.avail_in = static_cast<uInt>(std::min(stored.size() - from, kMost));
    z.next_out = reinterpret_cast<Bytef*>(inflated.data()) + to;
    z.avail_out = static_cast<uInt>(std::min(inflated.size() - to, kMost));
    size_t in = z.avail_in, out = z.avail_out;
    status = ::inflate(&z, Z_NO_FLUSH);
    from += in - z.avail_in;
    to += out - z.avail_out;
    BRASA_CHECK(status == Z_STREAM_END || (status == Z_OK && (in > z.avail_in || out > z.avail_out)), source_,
                ": record '", name, "' is not compressed as its entry says");
  }
  BRASA_CHECK(to == inflated.size(), source_, ": record '", name, "' has ", to, " bytes, its entry says ",
              inflated.size());
  return inflated;
}

std::string ZipReader::text(std::string_view name) const {
  std::vector<std::byte> inflated;
  std::span<const std::byte> bytes = read(name, inflated);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace brasa::io
