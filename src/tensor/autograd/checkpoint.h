#pragma once

#include <memory>

#include "support/scoped.h"
#include "tensor/autograd/meta.h"

namespace brasa::autograd {

class CheckpointFrame;

/// What a node keeps in place of a tensor.
struct Elsewhere {
  virtual ~Elsewhere() = default;
  /// The tensor, for a node of this name. It may share the memory of others that are given so.
  virtual Tensor value(const std::string& name) = 0;
  /// Nobody needs it any more.
  virtual void forget() = 0;
  Edge edge;  // where its gradient goes
};

/// Asked for each tensor that a node saves. In a checkpointed function gives what to keep in its place, but for leaves that want gradients,
/// which live on anyway; while hooks hold, what they make of it; else null. While a checkpointed function runs again, takes the tensor down.
std::unique_ptr<Elsewhere> drop(const Tensor& t);

/// While a checkpointed function is recorded, the number of the outermost one, which is another for each call; one number where a function
/// is recorded that a checkpointed one calls; else 0.
uint32_t checkpoint_number();

/// Whether what nodes save on this thread is dropped, or taken down.
bool in_checkpoint();

/// While it lives, what nodes save on this thread is left to `saving`, or taken down by `running_again`.
class CheckpointMode {
 public:
  CheckpointMode(std::shared_ptr<CheckpointFrame> saving, CheckpointFrame* running_again);

 private:
  std::shared_ptr<CheckpointFrame> frame_;
  Scoped<const std::shared_ptr<CheckpointFrame>*> saving_;
  Scoped<CheckpointFrame*> running_again_;
};

/// While it lives, nodes keep their values although they are made in a checkpointed function: a compiled one, which records operators
/// of its own when it runs again.
struct KeepValues : CheckpointMode {
  KeepValues() : CheckpointMode(nullptr, nullptr) {}
};

}  // namespace brasa::autograd
