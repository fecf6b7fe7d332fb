#include "capture/stance.h"

#include <atomic>
#include <utility>

#include <brasa/compile.h>

#include "support/error.h"
#include "support/nearest.h"

namespace brasa {
namespace {

using capture::Stance;

constexpr std::pair<const char*, Stance> kStances[] = {
    {"default", Stance::Default},
    {"force_eager", Stance::ForceEager},
    {"eager_on_recompile", Stance::EagerOnRecompile},
    {"fail_on_recompile", Stance::FailOnRecompile},
};
std::atomic<Stance> present = Stance::Default;

}  // namespace

std::string set_stance(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, stance] : kStances) {
    names.emplace_back(known);
    if (name != known) continue;
    Stance before = present.exchange(stance);
    for (const auto& [old, is] : kStances)
      if (is == before) return old;
  }
  fail(str("set_stance: there is no '", name, "'", nearest(name, names)));
}

namespace capture {

Stance stance() { return present.load(std::memory_order_relaxed); }

bool may_compile(const std::string& reason) {
  BRASA_CHECK(stance() != Stance::FailOnRecompile,
              "compile: a graph would be compiled where the stance is 'fail_on_recompile': ", reason);
  return stance() != Stance::EagerOnRecompile;
}

}  // namespace capture
}  // namespace brasa
