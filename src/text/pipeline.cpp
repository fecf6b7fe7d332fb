#include "text/pipeline.h"

#include <algorithm>

#include "support/error.h"
#include "text/bpe.h"
#include "text/unicode.h"

namespace brasa::text {
namespace {

// How many tokens stay of each of two texts: cuts the longer one first, then both to halves.
std::pair<size_t, size_t> longest_first(size_t a, size_t b, size_t room) {
  size_t shorter = std::min(a, b), longer = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = shorter + room % 2;
  }
  return a <= b ? std::pair(shorter, longer) : std::pair(longer, shorter);
}

void cut(std::vector<int64_t>& ids, size_t size, Side side) {
  if (size >= ids.size()) return;
  if (side == Side::Left)
    ids.erase(ids.begin(), ids.end() - static_cast<ptrdiff_t>(size));
  else
    ids.resize(size);
}

void truncate(std::vector<int64_t>& first, std::vector<int64_t>* second, size_t room, const EncodeOptions& options) {
  size_t all = first.size() + (second ? second->size() : 0);
  if (all <= room) return;
  if (options.truncation == Truncation::LongestFirst) {
    if (!second) return cut(first, room, options.truncation_side);
    auto [a, b] = longest_first(first.size(), second->size(), room);
    cut(first, a, options.truncation_side);
    return cut(*second, b, options.truncation_side);
  }
  std::vector<int64_t>* cut_one = options.truncation == Truncation::OnlyFirst ? &first : second;
  BRASA_CHECK(cut_one, "encode: truncation 'only second' for one text");
  BRASA_CHECK(cut_one->size() > all - room, "encode: ", all - room, " tokens too many, but the text to cut has ",
              cut_one->size());
  cut(*cut_one, cut_one->size() - (all - room), options.truncation_side);
}

}  // namespace

int64_t Template::tokens() const {
  return std::count_if(parts.begin(), parts.end(), [](const Part& p) { return p.kind == Part::Kind::Token; });
}

void Pipeline::add_tokens(std::vector<AddedToken> tokens, const std::string& source) {
  std::vector<AddedToken> raw, normalized;
  for (AddedToken& t : tokens) {
    BRASA_CHECK(!t.text.empty() && t.text.size() <= kLongestAddedToken, source, ": an added token of ", t.text.size(),
                " bytes; 1 to ", kLongestAddedToken, " are allowed");
    const std::string* other = vocabulary.token_of(t.id);
    BRASA_CHECK(!other || *other == t.text, source, ": the added token '", t.text, "' has the number ", t.id, " of '",
                other ? *other : "", "'");
    vocabulary.set(t.text, t.id);
    if (t.special) special_.insert(t.id);
    if (t.normalized && normalizer) {
      t.text = written_[t.id] = (*normalizer)(t.text);
      normalized.push_back(std::move(t));
    } else {
      raw.push_back(std::move(t));
    }
  }
  raw_ = AddedTokens(std::move(raw));
  normalized_ = AddedTokens(std::move(normalized));
}

void Pipeline::encode_segment(std::string_view text, std::vector<int64_t>& ids) const {
  std::string with_space;
  if (add_prefix_space && !text.starts_with(' ')) text = with_space = " " + std::string(text);
  std::vector<std::string_view> parts;
  switch (words) {
    case Words::Gpt2: split_gpt2(text, parts); break;
    case Words::Bert: split_bert(text, parts); break;
    case Words::Whole:
    case Words::Bytes: parts.push_back(text); break;
  }
  model->encode(parts, ids);
}

std::vector<int64_t> Pipeline::ids_of(std::string_view text) const {
  std::string valid = well_formed(text);
  std::vector<int64_t> ids;
  std::vector<Piece> pieces;
  raw_.split(valid, pieces);
  for (const Piece& piece : pieces) {
    if (piece.token) {
      ids.push_back(piece.token->id);
      continue;
    }
    if (!normalizer) {
      encode_segment(piece.text, ids);
      continue;
    }
    std::string normal = (*normalizer)(piece.text);
    std::vector<Piece> inner;
    normalized_.split(normal, inner);
    for (const Piece& p : inner) p.token ? ids.push_back(p.token->id) : encode_segment(p.text, ids);
  }
  return ids;
}

Encoding Pipeline::encode(std::string_view first, const std::string_view* second, const EncodeOptions& options) const {
  using Kind = Template::Part::Kind;
  const Template& around = second ? pair : single;
  std::vector<int64_t> a = ids_of(first), b;
  if (second) b = ids_of(*second);
  if (options.max_length) {
    int64_t special = options.special_tokens ? around.tokens() : 0;
    BRASA_CHECK(*options.max_length >= special, "encode: max_length ", *options.max_length, " leaves no room for the ",
                special, " special tokens");
    truncate(a, second ? &b : nullptr, static_cast<size_t>(*options.max_length - special), options);
  }
  Encoding out;
  auto put = [&](const std::vector<int64_t>& ids, int64_t type) {
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.type_ids.resize(out.ids.size(), type);
  };
  if (!options.special_tokens) {
    put(a, 0);
    put(b, 1);
    return out;
  }
  for (const Template::Part& part : around.parts)
    put(part.kind == Kind::First ? a : part.kind == Kind::Second ? b : std::vector{part.id}, part.type);
  return out;
}

std::string Pipeline::decode(IntArrayRef ids, bool skip_special_tokens) const {
  std::vector<const std::string*> tokens;
  for (int64_t id : ids) {
    const std::string* token = vocabulary.token_of(id);
    if (auto at = written_.find(id); at != written_.end()) token = &at->second;
    if (token && !(skip_special_tokens && special_.contains(id))) tokens.push_back(token);
  }
  if (join == Join::Bytes) return read_bytes(tokens);
  if (join == Join::Pieces) return join_pieces(tokens, join_prefix, join_cleanup);
  std::string out;
  for (const std::string* token : tokens) out += (token == tokens.front() ? "" : " ") + *token;
  return out;
}

}  // namespace brasa::text
