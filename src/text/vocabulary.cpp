#include "text/vocabulary.h"

namespace brasa::text {

void Vocabulary::set(std::string token, int64_t id) {
  auto [at, fresh] = ids_.insert_or_assign(std::move(token), id);
  tokens_[id] = &at->first;
}

std::optional<int64_t> Vocabulary::id_of(std::string_view token) const {
  auto at = ids_.find(token);
  return at == ids_.end() ? std::nullopt : std::optional(at->second);
}

const std::string* Vocabulary::token_of(int64_t id) const {
  auto at = tokens_.find(id);
  return at == tokens_.end() ? nullptr : at->second;
}

}  // namespace brasa::text
