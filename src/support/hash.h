#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace brasa {

/// Mixes one word into a running hash; for in-memory tables.
constexpr uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 32);
}

/// xxh3 of bytes, 64 bits: checksums and keys on disk.
uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0);
inline uint64_t hash_bytes(std::string_view s, uint64_t seed = 0) { return hash_bytes(s.data(), s.size(), seed); }
/// xxh3 of bytes, 128 bits, as 32 hexadecimal digits: names of cache entries.
std::string hash_name(std::string_view bytes);

}  // namespace brasa
