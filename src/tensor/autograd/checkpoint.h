#pragma once

#include <memory>

#include "support/scoped.h"
#include "tensor/autograd/meta.h"

namespace brasa::autograd {

class CheckpointFrame;

/// A value that was not kept: its number among those that the checkpointed function saves, and where its gradient goes.
struct Dropped {
  std::shared_ptr<CheckpointFrame> frame;
  size_t place;
  Edge edge;
};

/// Asked for each tensor that a node saves. In a checkpointed function gives what to keep in its place, null elsewhere and for leaves
/// that want gradients, which live on anyway. While such a function runs again, takes the tensor down.
std::unique_ptr<Dropped> drop(const Tensor& t);
/// The value, from running the function again. Shares the memory of what that run saved.
Tensor recomputed(const Dropped& dropped, const std::string& name);
/// Nobody needs it any more.
void forget(const Dropped& dropped);

/// Whether what nodes save on this thread is dropped, or taken down.
bool in_checkpoint();

/// While it lives, what nodes save on this thread is left to `saving`, or taken down by `running_again`.
class CheckpointMode {
 public:
  CheckpointMode(std::shared_ptr<CheckpointFrame> saving, CheckpointFrame* running_again);

 private:
  Scoped<std::shared_ptr<CheckpointFrame>> saving_;
  Scoped<CheckpointFrame*> running_again_;
};

/// While it lives, nodes keep their values although they are made in a checkpointed function: a compiled one, which records operators
/// of its own when it runs again.
struct KeepValues : CheckpointMode {
  KeepValues() : CheckpointMode(nullptr, nullptr) {}
};

}  // namespace brasa::autograd
