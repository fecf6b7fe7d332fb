#include "export/counts.h"

#include <algorithm>

#include <brasa/brasa.h>

#include "capture/names.h"
#include "capture/session.h"
#include "export/value_range.h"
#include "ops/decompose.h"
#include "support/error.h"
#include "tensor/known_sizes.h"

namespace brasa::exporting {

namespace {

constexpr int64_t kLargest = 1 << 20;  // that an example has memory for

constexpr int64_t kDifferent = 64;  // integers that recordings choose from

// A tensor of this size, which is a symbol of its own in a recording that reads it.
Tensor outside(int64_t size) {
  Recorder::Scope alone(nullptr);
  Tensor out = zeros({size}, TensorOptions(kBool).device(Device(kCPU)));
  mark_dynamic(out, 0);
  return out;
}

}  // namespace

Counts::Counts(std::vector<CountKind> kinds) : kinds_(std::move(kinds)), choices_(kDifferent) {}

void Counts::begin_call(bool again) {
  if (!again && call_ >= 0) {
    earlier_.emplace_back();
    for (const Count& c : all_) earlier_.back().push_back(c.stand_in.size(0));
  }
  all_.clear();
  names_.clear();
  sizes_.clear();
  if (again) return;
  taken_.clear();
  ++call_;
}

bool Counts::retry(const capture::Names& names, const capture::Session& session) {
  auto now = [&](const ir::Expr& e) { return session.binding()(names.in_trace(e)); };
  for (const capture::Names::Requirement& r : names.requirements()) {
    int64_t is = now(r.not_negative);
    if (is >= 0) continue;
    auto with = [&](size_t count, int64_t integer) {
      return now(ir::substitute(r.not_negative, [&](const ir::Expr& s) {
        return s == sizes_[count] ? std::optional(ir::Expr(integer)) : std::nullopt;
      }));
    };
    // The newest integer first; what is enough before what is nearer, and 0 and 1, which lead to other code, last.
    for (auto [enough, least] : {std::pair(true, 2), {true, 0}, {false, 2}, {false, 0}})
      for (size_t k = sizes_.size(); k-- > 0;) {
        if (!ir::is_symbol(sizes_[k]) || !ir::contains_symbol(r.not_negative, sizes_[k])) continue;
        int64_t was = all_[k].stand_in.size(0), apart = call_ < 2 ? call_ + 1 : 0;
        // A little less than the most is no other size in two calls.
        for (int64_t by :
             {is - apart, is, -is, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{6}}) {
          int64_t integer = std::max<int64_t>(was + by, least);
          if (integer == was || (enough && integer != was + by) || with(k, integer) < (enough ? 0 : is + 1)) continue;
          taken_[k] = integer;
          return true;
        }
      }
    fail(str(r.message.empty() ? "an assertion of the program does not hold" : r.message));
  }
  return false;
}

size_t Counts::calls_wanted() const {
  // What a function does with a number that it has itself is seen by the numbers that it is given.
  constexpr size_t kForIntegers = 4, kForNumbers = 12;
  return all_.empty() ? 0 : by_host() ? kForNumbers : kForIntegers;
}

bool Counts::by_host() const {
  return std::any_of(all_.begin(), all_.end(), [](const Count& c) { return c.by_host; });
}

bool Counts::varied(size_t count) const {
  return std::any_of(earlier_.begin(), earlier_.end(), [&](const std::vector<int64_t>& call) {
    return count < call.size() && call[count] != all_[count].stand_in.size(0);
  });
}

bool Counts::retry_with_less() {
  if (beyond_ && call_ < 2 && !all_.empty()) {
    beyond_ = false;
    return true;
  }
  if (!by_host() || choices_ == 1) return false;
  if (choices_ == 2 && few_ > 0)
    few_ /= 2;
  else
    choices_ /= 2;
  return true;
}

int64_t Counts::example(size_t count, Bounds bounds, bool by_host) const {
  if (auto it = taken_.find(count); it != taken_.end()) return it->second;
  CountKind kind = kinds_[std::min(count, kinds_.size() - 1)];
  int64_t least = bounds.least, greatest = std::min(bounds.greatest, std::max(least, kLargest));
  if (kind == CountKind::None) return least;
  if (kind == CountKind::One) return std::clamp<int64_t>(1, least, greatest);
  // 0 and 1 are other programs more often than not, and so are all that there are.
  least = std::min(std::max(least, few_), greatest);
  // Where only assertions say how many there are, these lessen it.
  if (kind == CountKind::All) return bounds.greatest <= kLargest ? greatest : least + choices_;
  auto place = static_cast<int64_t>(count);
  // Hardly any function has these as numbers of its own. No two of them, and none and a size, are related in the same way in both calls.
  int64_t beyond = least + (call_ == 0 ? 1009 + 17 * place : 614 + 11 * place);
  if (call_ < 2 && beyond_ && (!by_host || beyond <= greatest)) return beyond;
  int64_t choices = std::min(greatest - least, choices_);
  if (choices < 2) choices = std::min(greatest - least + 1, choices_);
  const int64_t first[] = {choices - 1, 0, choices / 2, choices > 2 ? 1 : 0}, step[] = {1, 2, 3, 1};
  auto call = static_cast<size_t>(std::min(call_, 3));
  return unlike_earlier(count, least, choices, (first[call] + step[call] * place) % choices);
}

// The first one that no earlier call had, which would go the way of that one, and no even one behind an even one, as what a function makes of these may be a part
// of what it does.
int64_t Counts::unlike_earlier(size_t count, int64_t least, int64_t choices, int64_t first) const {
  auto any = [&](auto is) {
    for (int64_t k = 0; k < choices; ++k)
      if (int64_t candidate = least + (first + k) % choices; is(candidate)) return std::optional(candidate);
    return std::optional<int64_t>();
  };
  auto fresh = [&](int64_t candidate) {
    return std::none_of(earlier_.begin(), earlier_.end(), [&](const std::vector<int64_t>& call) {
      return count < call.size() && call[count] == candidate;
    });
  };
  auto changes = [&](int64_t candidate) {
    return earlier_.empty() || count >= earlier_.back().size() || (earlier_.back()[count] - candidate) % 2 != 0;
  };
  if (auto best = any([&](int64_t candidate) { return fresh(candidate) && changes(candidate); })) return *best;
  return any(fresh).value_or(least + first);
}

std::vector<Recorder::Integer> Counts::read(capture::Session& session, const Tensor& t, const std::string& reader,
                                            bool by_host) {
  std::vector<Recorder::Integer> out;
  Tensor flat = t.to(kLong).reshape({-1});
  for (int64_t i = 0; i < t.numel(); ++i)
    out.push_back(read_one(session, flat.select(0, i).clone(), reader, by_host));  // which no write reaches
  return out;
}

Recorder::Integer Counts::read_one(capture::Session& session, const Tensor& from, const std::string& reader,
                                   bool by_host) {
  // One value that is read twice is one integer; and what it may be follows from what it is made of.
  std::vector<Tensor> tensors;
  for (const Count& c : all_) tensors.push_back(c.from);
  tensors.push_back(from);
  std::unique_ptr<ir::Graph> recorded = session.graph_of(tensors);
  ir::Facts facts(session.binding().symbols);
  std::unique_ptr<ir::Graph> graph = ops::decompose(*recorded, facts);
  ir::Value value = graph->outputs()[all_.size()].value;
  size_t at = 0;
  while (at < all_.size() && !(graph->outputs()[at].value == value)) ++at;
  if (at == all_.size()) {
    ValueRange range = ValueRanges().of(value);
    auto now = [&](const ir::Expr& e) { return session.binding()(e); };
    int64_t least = std::max<int64_t>(range.least ? now(*range.least) : 0, 0);
    int64_t greatest = std::max(range.greatest ? now(*range.greatest) : INT64_MAX, least);
    Tensor stand_in = outside(example(at, {least, greatest}, by_host));
    static_cast<void>(stand_in.clone());
    KnownSizes& sizes = *KnownSizes::current();
    std::optional<ir::Expr> size = sizes.size_of(stand_in, 0);
    BRASA_ASSERT(size, "a recording has not met what stands for an integer");
    all_.push_back({reader, from, stand_in, by_host});
    names_.push_back(sizes.name_of(*size));
    sizes_.push_back(*size);
  }
  all_[at].by_host |= by_host;
  return {all_[at].stand_in.size(0), names_[at]};
}

}  // namespace brasa::exporting
