#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "ops/table.h"
#include "support/scoped.h"
#include "support/thread_word.h"
#include "tensor/args.h"

// What <brasa/autocast.h> promises: dispatch converts the operands of a call as its row says.
namespace brasa::eager {

/// The kinds of devices that it is on for, a bit each.
BRASA_THREAD_WORD inline uint32_t autocast_kinds = 0;
inline bool autocasting() { return autocast_kinds != 0; }

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

/// A call's arguments with the operands as its row's policies want them: each operand by that of its device. What the call does itself is
/// not cast. False where nothing is to be done. brasa::Error where the call is refused.
class CastCall {
 public:
  CastCall(const ops::Row& row, ArrayRef<CallArg> args);
  explicit operator bool() const { return cast_.has_value(); }
  ArrayRef<CallArg> args() const { return cast_->args.args(); }

 private:
  struct Cast {
    explicit Cast(ArrayRef<CallArg> given) : args(given) {}
    NoAutocast off;
    ArgStore args;
  };
  std::optional<Cast> cast_;
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
