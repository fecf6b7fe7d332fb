#pragma once

#include <memory>
#include <unordered_map>

#include "ops/facts.h"
#include "support/scoped.h"
#include "tensor/args.h"

// What <brasa/autocast.h> promises: dispatch converts the operands of a call as its row says.
namespace brasa::eager {

bool autocasting();

using AutocastDTypes = std::unordered_map<DeviceType, DType>;

/// Autocast as it was when this was made, again while a Scope lives.
class AutocastAs {
 public:
  AutocastAs();
  friend bool operator==(const AutocastAs&, const AutocastAs&) = default;
  class Scope {
   public:
    explicit Scope(const AutocastAs& as);
    ~Scope();

   private:
    Scoped<uint32_t> enabled_;
    Scoped<bool> caches_;
    Scoped<AutocastDTypes> dtypes_;
  };

 private:
  uint32_t enabled_;
  bool caches_;
  AutocastDTypes dtypes_;
};

/// Suspends autocast while it lives.
class NoAutocast : Scoped<uint32_t> {
 public:
  NoAutocast();
};

/// A call's arguments with the operands as its policy wants them. What the call does itself is not cast.
class CastCall {
 public:
  CastCall(ops::Autocast policy, ArrayRef<CallArg> args);
  ArrayRef<CallArg> args() const { return args_.args(); }

 private:
  uint32_t on_;  // what is cast: see autocast.cpp
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
