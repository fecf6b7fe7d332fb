#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Zip archives as PyTorch writes and reads them: records that mostly lie uncompressed in the file, so that a mapped file's tensors can
// be used where they are, each at a multiple of 64 bytes. No record becomes a file. Checksums are written, but compared only where the
// reader is told to: PyTorch can leave them out.
namespace brasa::io {

/// The directory of an archive in memory. brasa::Error for what is malformed; `source` names the archive in it.
class ZipReader {
 public:
  enum class Checksums : bool { Ignored, Compared };
  /// `bytes` must outlive the reader.
  ZipReader(std::span<const std::byte> bytes, std::string source, Checksums checksums = Checksums::Ignored);

  /// In the directory's order.
  const std::vector<std::string>& names() const { return names_; }
  bool has(std::string_view name) const { return records_.contains(name); }
  /// The record's bytes: a part of the archive, or `inflated`, which then has to stay. brasa::Error if there is none.
  std::span<const std::byte> read(std::string_view name, std::vector<std::byte>& inflated) const;
  std::string text(std::string_view name) const;
  const std::string& source() const { return source_; }

 private:
  struct Record {
    bool deflated;
    uint32_t crc;
    uint64_t header, stored, size;  // where its local header is, its bytes in the file and out of it
  };
  std::span<const std::byte> stored_bytes(std::string_view name, const Record& record) const;
  std::span<const std::byte> inflate(std::string_view name, const Record& record,
                                     std::vector<std::byte>& inflated) const;

  std::span<const std::byte> bytes_;
  std::string source_;
  Checksums checksums_;
  std::vector<std::string> names_;
  std::map<std::string, Record, std::less<>> records_;
};

uint32_t zip_checksum(std::span<const std::byte> data, uint32_t of_before = 0);

/// Whether it begins as a zip archive does.
bool looks_like_zip(std::span<const std::byte> bytes);

/// Writes uncompressed records to `sink`, piece by piece.
class ZipWriter {
 public:
  using Sink = std::function<void(const void* data, size_t size)>;
  /// Sizes and places from `wide_from` on take the 64-bit form.
  explicit ZipWriter(Sink sink, uint64_t wide_from = 0xffffffff) : sink_(std::move(sink)), wide_from_(wide_from) {}
  using Pieces = std::initializer_list<std::span<const std::byte>>;
  /// A record of several pieces.
  void add(const std::string& name, Pieces pieces);
  void add(const std::string& name, std::span<const std::byte> data) { add(name, Pieces{data}); }
  void add(const std::string& name, std::string_view text);
  /// Writes the directory. Nothing may follow.
  void finish();

 private:
  struct Record {
    std::string name;
    uint32_t crc;
    uint64_t size, header;
  };
  void emit(const std::string& bytes);

  Sink sink_;
  uint64_t wide_from_, at_ = 0;
  std::vector<Record> records_;
};

}  // namespace brasa::io
