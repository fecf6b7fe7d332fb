#include "import/affine.h"

#include <cctype>
#include <charconv>

namespace brasa::import {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Both forms in one grammar: sum = product (('+' | '-') product)…, product = factor ('*' factor)…
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<Affine> whole() {
    std::optional<Affine> out = sum();
    return at_ == text_.size() ? out : std::nullopt;
  }

 private:
  using Result = std::optional<Affine>;
  static constexpr int kMaxDepth = 16;

  static Result added(const Result& a, const Result& b) {
    if (!a || !b || (!a->symbol.empty() && !b->symbol.empty())) return std::nullopt;
    Affine out = a->symbol.empty() ? *b : *a;
    if (__builtin_add_overflow(a->offset, b->offset, &out.offset)) return std::nullopt;
    return out;
  }
  static Result times(const Result& a, const Result& b) {
    if (!a || !b || (!a->symbol.empty() && !b->symbol.empty())) return std::nullopt;
    Affine out = a->symbol.empty() ? *b : *a;
    int64_t by = a->symbol.empty() ? a->offset : b->offset;
    if (__builtin_mul_overflow(out.factor, by, &out.factor) || __builtin_mul_overflow(out.offset, by, &out.offset))
      return std::nullopt;
    return out;
  }

  bool take(std::string_view what) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  Result sum() {
    Result out = product();
    while (out) {
      if (take("+"))
        out = added(out, product());
      else if (take("-"))
        out = added(out, times(Affine{"", 0, -1}, product()));
      else
        break;
    }
    return out;
  }
  Result product() {
    Result out = factor();
    while (out && take("*")) out = times(out, factor());
    return out;
  }
  Result number() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    Affine out;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), out.offset);
    if (error != std::errc()) return std::nullopt;
    at_ = static_cast<size_t>(end - text_.data());
    return out;
  }
  // The arguments of a call, up to its end.
  Result call(Result (*combine)(const Result&, const Result&)) {
    if (++depth_ > kMaxDepth) return std::nullopt;
    Result out = sum();
    while (out && take(",")) out = combine(out, sum());
    --depth_;
    return out && take(")") ? out : std::nullopt;
  }
  Result factor() {
    if (take("Add(")) return call(added);
    if (take("Mul(")) return call(times);
    if (take("Integer(")) {
      Result out = number();
      return out && take(")") ? out : std::nullopt;
    }
    bool quoted = take("Symbol('");
    if (Result n = quoted ? std::nullopt : number()) return n;
    size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    Affine out{std::string(text_.substr(begin, at_ - begin)), 1, 0};
    if (out.symbol.empty()) return std::nullopt;
    if (quoted) {
      size_t end = text_.find(')', at_);
      if (!take("'") || end == text_.npos) return std::nullopt;
      at_ = end + 1;
    }
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<Affine> affine_of(std::string_view text) { return Reader(text).whole(); }

}  // namespace brasa::import
