#pragma once

#include <memory>
#include <string>
#include <vector>

#include <brasa/generator.h>

#include "capture/joint.h"
#include "capture/workspace.h"

namespace brasa::capture {

/// What a session finds out about a call of a pure function, for calls that skip the body.
struct Watch {
  std::string reason;  // why they can not; empty: they can
  /// Keys of random numbers that the call took from streams, in order.
  struct Draw {
    Tensor key;
    Generator stream;
    uint64_t count;
  };
  std::vector<Draw> draws;
  std::vector<Tensor> graded;  // whose `grad()` was looked at or set
  bool spent = false;          // a backward pass inside has used up the operators' nodes

  /// The run of its only segment.
  const Trace* trace = nullptr;
  runtime::Device* device = nullptr;
  Binding binding;
  std::vector<Tensor> inputs;  // the arguments of the trace behind them
  size_t given = 0;            // how many these are
  program::SymbolValues symbols;
  std::shared_ptr<const compiler::Executable> executable;
  std::shared_ptr<const Halves> halves;  // null: no gradients are asked for outside
  std::vector<Delivery> deliveries;
  std::vector<Fresh> fresh;
  GradientFlow flow;  // with halves

  void refuse(std::string why) {
    if (reason.empty()) reason = std::move(why);
  }
};

}  // namespace brasa::capture
