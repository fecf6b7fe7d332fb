#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace brasa::text {

/// Tokens and their numbers, which are at least 0 and need not be dense.
class Vocabulary {
 public:
  /// A token that is there gets this number; a number that is taken goes to this token.
  void set(std::string token, int64_t id);
  std::optional<int64_t> id_of(std::string_view token) const;
  /// nullptr if there is none.
  const std::string* token_of(int64_t id) const;
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  const auto& ids() const { return ids_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> ids_;
  std::unordered_map<int64_t, const std::string*> tokens_;  // keys of ids_
};

}  // namespace brasa::text
