#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <brasa/call.h>

#include "ops/facts.h"

// What <brasa/autocast.h> promises: dispatch converts the operands of a call as its row says.
namespace brasa::eager {

bool autocasting();

/// Suspends autocast while it lives.
class NoAutocast {
 public:
  NoAutocast();
  ~NoAutocast();
  NoAutocast(const NoAutocast&) = delete;
  NoAutocast& operator=(const NoAutocast&) = delete;

 private:
  bool previous_;
};

/// A call's arguments with the operands as its policy wants them. What the call does itself is not cast.
class CastCall {
 public:
  CastCall(ops::Autocast policy, ArrayRef<CallArg> args);
  ArrayRef<CallArg> args() const { return args_; }

 private:
  NoAutocast off_;
  std::vector<CallArg> args_;
  std::deque<Tensor> tensors_;
  std::deque<std::vector<Tensor>> lists_;
  std::deque<std::vector<std::optional<Tensor>>> optional_lists_;
};

struct CastCacheEntries;
/// The converted weights of a recording are its own: they would lead to another graph in the next one.
class CastCache {
 public:
  CastCache();
  ~CastCache();
  CastCache(const CastCache&) = delete;
  CastCache& operator=(const CastCache&) = delete;
  void clear();

 private:
  std::unique_ptr<CastCacheEntries> entries_;
  CastCacheEntries* outer_;
};

}  // namespace brasa::eager
