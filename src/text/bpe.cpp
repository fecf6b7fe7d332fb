#include "text/bpe.h"

#include <algorithm>

#include "support/error.h"

namespace brasa::text {

ByteLevelBpe::ByteLevelBpe(const Vocabulary& vocabulary, const std::vector<std::pair<std::string, std::string>>& merges,
                           Options options, const std::string& source)
    : vocabulary_(vocabulary), options_(std::move(options)) {
  int64_t unknown = -1;
  if (options_.unknown) {
    auto id = vocabulary.id_of(*options_.unknown);
    BRASA_CHECK(id, source, ": the unknown token '", *options_.unknown, "' is not in the vocabulary");
    unknown = *id;
  }
  for (size_t b = 0; b < bytes_.size(); ++b) {
    char c = static_cast<char>(b);
    bytes_[b] = vocabulary.id_of(written_bytes({&c, 1})).value_or(unknown);
  }
  uint32_t rank = 0;
  for (const auto& merge : merges) {
    auto id = [&](const std::string& token) {
      auto found = vocabulary.id_of(token);
      BRASA_CHECK(found, source, ": merge ", rank, " of '", merge.first, "' and '", merge.second, "': '", token,
                  "' is not in the vocabulary");
      return *found;
    };
    merges_.insert_or_assign(pair_of(id(merge.first), id(merge.second)), Merge{rank, id(merge.first + merge.second)});
    ++rank;
  }
}

// A word's tokens as a list of which each merge takes one away, and a heap of the pairs that could be merged.
class ByteLevelBpe::Word {
 public:
  explicit Word(const ByteLevelBpe& model) : model_(model) {}

  void encode(std::string_view bytes, std::vector<int64_t>& ids) {
    tokens_.clear();
    heap_.clear();
    for (char c : bytes) {
      int64_t id = model_.bytes_[static_cast<uint8_t>(c)];
      if (id < 0) continue;
      auto at = static_cast<int64_t>(tokens_.size());
      tokens_.push_back({id, at - 1, at + 1});
    }
    if (tokens_.empty()) return;
    tokens_.back().next = kNone;
    for (int64_t i = 0; i + 1 < static_cast<int64_t>(tokens_.size()); ++i) offer(i);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      Pair p = heap_.back();
      heap_.pop_back();
      merge(p);
    }
    for (int64_t i = 0; i != kNone; i = tokens_[static_cast<size_t>(i)].next) ids.push_back(at(i).id);
  }

 private:
  static constexpr int64_t kNone = -1;
  struct Token {
    int64_t id, previous, next;  // id is kNone once it is part of the one before
  };
  struct Pair {
    uint32_t rank;
    int64_t at, id;  // the left one, and what both become
  };
  static bool later(const Pair& a, const Pair& b) { return a.rank != b.rank ? a.rank > b.rank : a.at > b.at; }
  Token& at(int64_t i) { return tokens_[static_cast<size_t>(i)]; }

  const Merge* merge_at(int64_t i) {
    auto found = model_.merges_.find(pair_of(at(i).id, at(at(i).next).id));
    return found == model_.merges_.end() ? nullptr : &found->second;
  }
  void offer(int64_t i) {
    if (i == kNone || at(i).next == kNone) return;
    const Merge* m = merge_at(i);
    if (!m) return;
    heap_.push_back({m->rank, i, m->id});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void merge(const Pair& p) {
    Token& left = at(p.at);
    if (left.id == kNone || left.next == kNone) return;
    // One of the two may have changed since the pair was found.
    const Merge* m = merge_at(p.at);
    if (!m || m->id != p.id) return;
    Token& right = at(left.next);
    left.id = p.id;
    right.id = kNone;
    left.next = right.next;
    if (left.next != kNone) at(left.next).previous = p.at;
    offer(left.previous);
    offer(p.at);
  }

  const ByteLevelBpe& model_;
  std::vector<Token> tokens_;
  std::vector<Pair> heap_;
};

void ByteLevelBpe::encode(std::span<const std::string_view> words, std::vector<int64_t>& ids) const {
  Word merger(*this);
  for (std::string_view word : words) {
    if (options_.ignore_merges) {
      if (auto id = vocabulary_.id_of(written_bytes(word))) {
        ids.push_back(*id);
        continue;
      }
    }
    merger.encode(word, ids);
  }
}

}  // namespace brasa::text
