#include "fuzz/program.h"

namespace brasa::fuzz {

Program minimised(Program p, const std::string& backend) {
  auto fails = [&](const Program& q) { return !q.calls.empty() && !difference(q, backend).empty(); };
  auto without = [](auto list, size_t k) {
    list.erase(list.begin() + static_cast<int64_t>(k));
    return list;
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    auto take = [&](const Program& q) {
      if (!fails(q)) return false;
      p = q;
      return smaller = true;
    };
    for (size_t k = p.calls.size(); k-- > 0;) {
      Program q = p;
      q.calls = without(p.calls, k);
      take(q);
    }
    for (size_t f = 0; f < p.functions.size(); ++f)
      for (size_t k = p.functions[f].size(); k-- > 0;) {
        Program q = p;
        q.functions[f] = without(p.functions[f], k);
        take(q);
      }
    for (size_t k = 0; k < p.calls.size(); ++k) {
      auto simpler = [&](auto change) {
        Program q = p;
        change(q.calls[k]);
        if (text(q) != text(p)) take(q);
      };
      simpler([](Call& c) { c.alias = Alias::None; });
      simpler([](Call& c) { c.hook = false; });
      simpler([](Call& c) { c.shared_tensor = false; });
      simpler([](Call& c) { c.leaf = true; });
      simpler([](Call& c) { c.gradient = false; });
      simpler([](Call& c) { c.after = After::Nothing; });
      simpler([&](Call& c) { c.rows = p.calls[0].rows; });
      simpler([&](Call& c) { c.number = p.calls[0].number; });
    }
  }
  return p;
}

}  // namespace brasa::fuzz
