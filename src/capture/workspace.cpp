#include "capture/workspace.h"

#include <utility>

namespace brasa::capture {
namespace {

struct Spare {
  std::vector<Workspace> list;
  Spare();
  ~Spare();
};
// Plain, so that they can still be read while the thread's objects are destroyed.
thread_local Spare* t_spare = nullptr;
thread_local bool t_ended = false;

Spare::Spare() { t_spare = this; }
Spare::~Spare() {
  t_spare = nullptr;
  t_ended = true;
}

Spare* spare() {
  if (t_spare || t_ended) return t_spare;
  static thread_local Spare here;
  return &here;
}

}  // namespace

Workspace Workspace::take() {
  Spare* s = spare();
  if (!s || s->list.empty()) return {};
  Workspace out = std::move(s->list.back());
  s->list.pop_back();
  return out;
}

void Workspace::give(Workspace workspace) {
  if (Spare* s = spare()) s->list.push_back(std::move(workspace));
}

}  // namespace brasa::capture
