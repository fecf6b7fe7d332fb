#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace brasa {

struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // unmaps when the last copy goes
};

/// A regular file, mapped. What is written to the memory stays in this process; the file does not change. brasa::Error with the
/// system's reason if it cannot be mapped.
MappedFile map_file(const std::string& path);
/// The first bytes of a file, to which goes what is written to the memory. The file is made where there is none, and grows where it is
/// shorter.
MappedFile map_shared_file(const std::string& path, size_t bytes);

}  // namespace brasa
