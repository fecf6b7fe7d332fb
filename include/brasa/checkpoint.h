#pragma once

#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <brasa/export.h>
#include <brasa/tensor.h>

namespace brasa {

struct CheckpointOptions {
  /// Random numbers are the same the second time. The default generator's alone.
  bool preserve_rng_state = true;
};

namespace detail {

/// While it lives, operators keep for backward a note that `again` makes the value, in place of the value.
class BRASA_API CheckpointScope {
 public:
  CheckpointScope(std::function<void()> again, const CheckpointOptions& options);
  ~CheckpointScope();
  CheckpointScope(const CheckpointScope&) = delete;
  CheckpointScope& operator=(const CheckpointScope&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detail

/// f(args...), whose intermediate values are not kept for backward: the first node that needs one of them runs f again (Chen et al.
/// 2016). Trades a second forward for memory. f must do the same both times, and what it reads must not have changed since; random
/// numbers, grad mode and autocast are as they were. Gradients, second ones too, are those of f itself.
///
/// Inside `compile` f becomes part of the recorded graph, and so does what is computed again of it for the backward pass; a value is kept
/// where computing it again could round in another way (a maximum that is compared with its elements).
template <class F, class... A>
auto checkpoint(const CheckpointOptions& options, F f, A&&... args) {
  auto call = std::make_shared<std::pair<F, std::tuple<std::decay_t<A>...>>>(
      std::move(f), std::tuple<std::decay_t<A>...>(std::forward<A>(args)...));
  auto run = [call] { return std::apply(call->first, call->second); };
  detail::CheckpointScope scope([run] { (void)run(); }, options);
  return run();
}
template <class F, class... A>
  requires(!std::is_same_v<std::decay_t<F>, CheckpointOptions>)
auto checkpoint(F f, A&&... args) {
  return checkpoint(CheckpointOptions{}, std::move(f), std::forward<A>(args)...);
}

/// The functions one after the other, as `segments` checkpoints of about equal length; the last one keeps its values, since backward
/// begins with it.
BRASA_API Tensor checkpoint_sequential(const std::vector<std::function<Tensor(Tensor)>>& functions, size_t segments,
                                       Tensor input, const CheckpointOptions& options = {});

}  // namespace brasa
