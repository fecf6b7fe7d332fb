#pragma once

#include <any>
#include <functional>
#include <memory>

#include <brasa/export.h>
#include <brasa/tensor.h>

namespace brasa::autograd {

/// While it lives, what operators of this thread save for their backward passes goes through `pack` and `unpack` (PyTorch's
/// torch.autograd.graph.saved_tensors_hooks): kept in fewer bytes, in another place, in a file.
///
///     autograd::SavedTensorsHooks hooks([](const Tensor& t) { return t.to(kBFloat16); },
///                                       [](const std::any& kept) { return std::any_cast<Tensor>(kept).to(kFloat32); });
///
/// `pack` gets a tensor without history and gives anything; `unpack` makes of it a tensor of the same sizes and dtype, each time that a backward
/// pass needs it. Of hooks inside one another the innermost hold, and inside of a checkpointed function the checkpoint does. A compiled
/// function that is called meanwhile keeps its values so; in the body of one they end the graph, and what follows runs as it is written until they end.
class BRASA_API SavedTensorsHooks {
 public:
  using Pack = std::function<std::any(const Tensor&)>;
  using Unpack = std::function<Tensor(const std::any&)>;

  SavedTensorsHooks(Pack pack, Unpack unpack);
  ~SavedTensorsHooks();
  SavedTensorsHooks(const SavedTensorsHooks&) = delete;
  SavedTensorsHooks& operator=(const SavedTensorsHooks&) = delete;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace brasa::autograd
