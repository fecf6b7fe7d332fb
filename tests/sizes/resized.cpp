#include "resized.h"

#include <algorithm>
#include <set>

#include "support/str.h"

namespace brasa::test {
namespace {

using ops::SampleArg;
using ops::TensorSample;

template <class F>
void each_tensor(ops::Sample& sample, F f) {
  for (SampleArg& a : sample.args) {
    if (auto* one = std::get_if<TensorSample>(&a)) f(*one);
    if (auto* list = std::get_if<std::vector<TensorSample>>(&a))
      for (TensorSample& t : *list) f(t);
  }
}

int64_t numel(const TensorSample& t) {
  int64_t n = 1;
  for (int64_t d : t.shape) n *= d;
  return n;
}

std::set<int64_t> extents_of(ops::Sample sample) {
  std::set<int64_t> out;
  each_tensor(sample, [&](const TensorSample& t) { out.insert(t.shape.begin(), t.shape.end()); });
  return out;
}

std::set<Extents> other_extents(const std::set<int64_t>& extents) {
  constexpr int64_t kSizes[] = {0, 1, 2, 7};
  constexpr int64_t kPrimes[] = {3, 5, 7, 11, 13, 17, 19};
  Extents same, doubled, primes;
  for (int64_t d : extents) {
    same[d] = d;
    doubled[d] = 2 * d;
    primes[d] = kPrimes[primes.size() % std::size(kPrimes)];
  }
  std::set<Extents> out = {doubled, primes};
  for (int64_t size : kSizes) {
    Extents all = same;
    for (auto& [d, to] : all) {
      to = size;
      Extents one = same;
      one[d] = size;
      out.insert(one);
    }
    out.insert(all);
  }
  out.erase(same);
  return out;
}

// A sample's sizes as numbers: extents, and counts of elements.
class Numbers {
 public:
  Numbers(ops::Sample from, const Extents& extents) : moved_(extents) {
    each_tensor(from, [&](TensorSample t) {
      int64_t before = numel(t);
      for (int64_t& d : t.shape) d = extents.at(d);
      moved_.emplace(before, numel(t));
    });
  }
  ir::Expr of(ir::Expr e) const {
    auto it = moved_.find(e.constant());
    return it == moved_.end() ? e : ir::Expr(it->second);
  }

 private:
  Extents moved_;
};

ops::Sample resized(const ops::Sample& sample, const Extents& extents) {
  ops::Sample out = sample;
  each_tensor(out, [&](TensorSample& t) {
    for (int64_t& d : t.shape) d = extents.at(d);
  });
  return out;
}

// The interpreter is slow.
bool is_large(ops::Sample sample) {
  constexpr int64_t kMost = 1500;
  int64_t all = 0;
  each_tensor(sample, [&](const TensorSample& t) { all += numel(t); });
  return all > kMost;
}

// Whether a number among the arguments followed.
bool follow(const ops::Row& row, const Numbers& numbers, ops::Sample& sample) {
  bool changed = false;
  for (size_t i = 0; i < sample.args.size(); ++i) {
    auto* literal = std::get_if<ir::Arg>(&sample.args[i]);
    if (!literal || row.schema.params[i].type != ir::ParamType::Int || row.schema.params[i].use != ir::NumberUse::Size)
      continue;
    auto move = [&](ir::Expr& e) {
      ir::Expr to = numbers.of(e);
      changed = changed || to.constant() != e.constant();
      e = to;
    };
    if (auto* e = literal->get_if<ir::Expr>()) {
      ir::Expr one = *e;
      move(one);
      *literal = ir::Arg(one);
    } else if (auto* list = literal->get_if<std::vector<ir::Expr>>()) {
      std::vector<ir::Expr> items = *list;
      for (ir::Expr& item : items) move(item);
      *literal = ir::Arg(std::move(items));
    }
  }
  return changed;
}

}  // namespace

std::vector<Resized> at_other_sizes(const ops::Row& row, const ops::Sample& sample) {
  std::vector<Resized> out;
  for (const Extents& extents : other_extents(extents_of(sample))) {
    std::string what;
    bool every = true;
    for (auto [from, to] : extents) {
      what += str(what.empty() ? "" : ", ", from, "→", to);
      every = every && from != to;
    }
    ops::Sample tensors = resized(sample, extents), all = tensors;
    if (is_large(tensors)) continue;
    if (follow(row, Numbers(sample, extents), all)) out.push_back({str(what, " in numbers too"), every, all});
    out.push_back({what, every, std::move(tensors)});
  }
  return out;
}

}  // namespace brasa::test
