#include "capture/workspace.h"

#include <utility>
#include <vector>

#include "support/thread_object.h"

namespace brasa::capture {

using Spare = ThreadObject<std::vector<Workspace>>;

Workspace Workspace::take() {
  std::vector<Workspace>* spare = Spare::get();
  if (!spare || spare->empty()) return {};
  Workspace out = std::move(spare->back());
  spare->pop_back();
  return out;
}

void Workspace::give(Workspace workspace) {
  if (std::vector<Workspace>* spare = Spare::get()) spare->push_back(std::move(workspace));
}

}  // namespace brasa::capture
