#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace brasa::io {

struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // unmaps when the last copy goes
};

/// A regular file, mapped for reading. brasa::Error with the system's reason if it cannot be.
MappedFile map_file(const std::string& path);

}  // namespace brasa::io
