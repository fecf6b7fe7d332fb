#pragma once

#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include <brasa/call.h>

// What <brasa/autocast.h> promises: dispatch asks for an operator's policy and converts the operands of its calls.
namespace brasa::eager {

enum class CastPolicy : uint8_t { None, Lower, Float32, Widest };

/// Of an operator by the name that its overloads share, "conv2d". The lists are in autocast_lists.cpp.
CastPolicy cast_policy(std::string_view base);
/// The names of a list, for tests.
std::vector<std::string_view> cast_list(CastPolicy policy);

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
  CastCall(CastPolicy policy, ArrayRef<CallArg> args);
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
