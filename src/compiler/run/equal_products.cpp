#include "compiler/run/equal_products.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/text.h"

// The gradients by weights of equal layers leave processors without work one by one: together they are one call with as many tiles as all have.
namespace brasa::compiler {

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
  if (!is_repeatable(p.steps[step]) || end == p.steps.size()) return 1;
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
