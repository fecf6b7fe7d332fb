#include "compiler/run/plan.h"
#include "ir/text.h"

// What a plan says: its text, and which steps touch nothing of each other's.
namespace brasa::compiler {

void append_to(std::string& out, const Place& p) {
  if (p.kind == Place::Arena || p.kind == Place::Prepared)
    out += str(p.kind == Place::Arena ? "arena + " : "prepared + ", p.offset);
  else
    out += str(p.kind == Place::Input ? "input " : "output ", p.index,
               p.offset.is(0) ? std::string() : str(" + ", p.offset));
}

void append_to(std::string& out, const Plan& p) {
  auto checks = [&](size_t after) {
    for (const Plan::Check& c : p.checks)
      if (c.after == after) out += str("check ", c.place, ": ", c.message, "\n");
  };
  checks(static_cast<size_t>(-1));
  for (size_t s = 0; s < p.steps.size(); ++s) {
    const Group& g = p.steps[s];
    out += str("step ", s, ": ", name(g.kind), " ", g.domain);
    for (size_t i = 0; i < p.places[s].size(); ++i)
      out += str(i == 0 && !g.inputs.empty() ? " reads " : i == g.inputs.size() ? " writes " : ", ", p.places[s][i]);
    out += "\n";
    checks(s);
  }
  out += str("arena of ", p.arena_bytes, " bytes\n");
  if (p.prepared) out += str("steps before ", p.prepared, " prepare ", p.prepared_bytes, " bytes\n");
}

bool independent(const Plan& p, size_t a, size_t b) {
  struct Use {
    const Place& place;
    Expr bytes;
    bool written;
  };
  auto use = [&](size_t s, size_t i) {
    const Group& g = p.steps[s];
    bool written = i >= g.inputs.size();
    const ir::Type& t = type_of(written ? g.outputs[i - g.inputs.size()] : g.inputs[i]);
    return Use{p.places[s][i], t.numel() * Expr(size_of(t.dtype)), written};
  };
  auto overlap = [](const Use& x, const Use& y) {
    if ((!x.written && !y.written) || x.place.kind != y.place.kind || x.place.index != y.place.index) return false;
    if (x.place.kind != Place::Arena && x.place.kind != Place::Prepared) return true;
    if (!x.place.offset.is_constant() || !y.place.offset.is_constant()) return true;
    int64_t px = x.place.offset.constant(), py = y.place.offset.constant();
    auto before = [](int64_t at, Expr bytes, int64_t other) {
      return bytes.is_constant() && at + bytes.constant() <= other;
    };
    return !before(px, x.bytes, py) && !before(py, y.bytes, px);
  };
  for (size_t i = 0; i < p.places[a].size(); ++i)
    for (size_t j = 0; j < p.places[b].size(); ++j)
      if (overlap(use(a, i), use(b, j))) return false;
  return true;
}

}  // namespace brasa::compiler
