#include "text/prefix_table.h"

#include <algorithm>

namespace brasa::text {

PrefixTable::PrefixTable(std::vector<Word> words) {
  std::stable_sort(words.begin(), words.end(), [](const Word& a, const Word& b) { return a.text < b.text; });
  for (Word& w : words) {
    if (w.text.empty()) continue;
    if (!words_.empty() && words_.back().text == w.text)
      words_.back().id = w.id;
    else
      words_.push_back(std::move(w));
  }
  for (const Word& w : words_) ++begin_[static_cast<uint8_t>(w.text[0]) + size_t{1}];
  for (size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
}

const PrefixTable::Word* PrefixTable::longest(std::string_view text) const {
  if (text.empty()) return nullptr;
  auto first = static_cast<uint8_t>(text[0]);
  auto begin = words_.begin() + begin_[first], end = words_.begin() + begin_[first + size_t{1}];
  const Word* best = nullptr;
  // All words of [begin, end) begin with the first `n` bytes.
  for (size_t n = 1; begin != end; ++n) {
    if (begin->text.size() == n) best = &*begin++;
    if (n == text.size()) break;
    auto c = static_cast<uint8_t>(text[n]);
    auto at = [n](const Word& w) { return static_cast<uint8_t>(w.text[n]); };
    begin = std::partition_point(begin, end, [&](const Word& w) { return at(w) < c; });
    end = std::partition_point(begin, end, [&](const Word& w) { return at(w) == c; });
  }
  return best;
}

}  // namespace brasa::text
