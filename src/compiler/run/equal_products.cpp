#include "compiler/run/equal_products.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/text.h"
#include "support/str.h"

// The gradients by weights of equal layers leave processors without work one by one: together they are one call with as many tiles as all have.
namespace brasa::compiler {

std::vector<size_t> equal_kernels(const std::vector<Group>& groups) {
  std::vector<size_t> out(groups.size());
  std::unordered_map<std::string, size_t> first;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].kind != GroupKind::Loops) continue;
    auto [it, fresh] = first.try_emplace(str(groups[g].domain, ir::print(*groups[g].graph)), g);
    if (!fresh) out[g] = out[it->second] = it->second + 1;
  }
  return out;
}

bool is_repeatable(const Group& g) {
  return g.kind == GroupKind::Library && g.library->repeats && g.outputs.size() == 1 && g.output_strides[0].empty() &&
         type_of(g.outputs[0]).rank() == 2;
}

std::vector<std::vector<size_t>> equal_products(const std::vector<Group>& groups,
                                                const std::function<bool(size_t)>& stands) {
  std::unordered_map<std::string, size_t> known;
  std::vector<std::vector<size_t>> sets;
  std::unordered_set<ir::Value> claimed;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!is_repeatable(groups[g]) || !stands(g)) continue;
    const std::vector<ir::Value>& read = groups[g].inputs;
    if (std::any_of(read.begin(), read.end(), [&](ir::Value v) { return claimed.count(v) > 0; })) continue;
    claimed.insert(read.begin(), read.end());
    auto [it, fresh] = known.try_emplace(ir::print(*groups[g].graph), sets.size());
    if (fresh) sets.emplace_back();
    sets[it->second].push_back(g);
  }
  std::erase_if(sets, [](const std::vector<size_t>& set) { return set.size() < 2; });
  return sets;
}

void TensorRows::add(const std::vector<ir::Value>& tensors) {
  const ir::Type& t = type_of(tensors[0]);
  for (size_t i = 0; i < tensors.size(); ++i) of_[tensors[i]] = {rows_.size(), i};
  rows_.push_back({t.numel().constant() * size_of(t.dtype), tensors.size(), {}});
}

bool TensorRows::take(ir::Value v, Block& block) {
  auto it = of_.find(v);
  if (it == of_.end()) return false;
  Row& row = rows_[it->second.first];
  if (!row.range) row.range = block.take(row.bytes * static_cast<int64_t>(row.left));
  return true;
}

void TensorRows::give_back(ir::Value v, Block& block) {
  auto it = of_.find(v);
  if (it == of_.end()) return;
  if (Row& row = rows_[it->second.first]; --row.left == 0) block.give_back(*row.range);
}

void TensorRows::each(const std::function<void(ir::Value, int64_t offset)>& f, const Block& block) const {
  for (const auto& [v, at] : of_) {
    const Row& row = rows_[at.first];
    f(v, block.offset(*row.range) + row.bytes * static_cast<int64_t>(at.second));
  }
}

std::vector<int64_t> apart(const Plan& p, size_t step, size_t next) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < p.places[step].size(); ++i) {
    const Place &a = p.places[step][i], &b = p.places[next][i];
    if (a.kind != Place::Arena || b.kind != Place::Arena || !a.offset.is_constant() || !b.offset.is_constant())
      return {};
    out.push_back(b.offset.constant() - a.offset.constant());
  }
  return out;
}

size_t calls_in_one(const Plan& p, size_t step, const std::function<bool(size_t next)>& fits) {
  size_t end = step + 1;
  if (!is_repeatable(p.steps[step])) return 1;
  std::vector<int64_t> distances;
  while (end < p.steps.size() && fits(end)) {
    std::vector<int64_t> next = apart(p, end - 1, end);
    if (next.empty() || (!distances.empty() && next != distances)) break;
    distances = std::move(next);
    ++end;
  }
  return end - step;
}

}  // namespace brasa::compiler
