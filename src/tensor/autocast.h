#pragma once

#include <memory>

#include "ops/facts.h"
#include "support/scoped.h"
#include "tensor/args.h"

// What <brasa/autocast.h> promises: dispatch converts the operands of a call as its row says.
namespace brasa::eager {

bool autocasting();

/// Suspends autocast while it lives.
class NoAutocast : Scoped<bool> {
 public:
  NoAutocast();
};

/// A call's arguments with the operands as its policy wants them. What the call does itself is not cast.
class CastCall {
 public:
  CastCall(ops::Autocast policy, ArrayRef<CallArg> args);
  ArrayRef<CallArg> args() const { return args_.args(); }

 private:
  NoAutocast off_;
  ArgStore args_;
};

struct CastCacheEntries;
/// The converted weights of a recording are its own: they would lead to another graph in the next one.
class CastCache {
 public:
  CastCache();
  ~CastCache();
  void clear();

 private:
  std::unique_ptr<CastCacheEntries> entries_;
  Scoped<CastCacheEntries*> installed_;
};

}  // namespace brasa::eager
