#pragma once

#include <cstdint>

namespace brasa {

/// How often this process, and those that it is a fork of, forked: what it mapped before the last time is shared with another process.
/// The number changes while no other thread holds a lock of mutex.h.
uint64_t forks();

/// Functions that run when the process forks: `before` while locks can still be taken, the others in the parent and in the child when locks
/// are free again (see mutex.h). Null ones are left out. For objects that live as long as the library, so that they are there before a
/// thread forks: one that came meanwhile would miss the fork, and the child would share with its parent what it should have let go.
class OnFork {
 public:
  OnFork(void (*before)(), void (*in_parent)(), void (*in_child)());
  OnFork(const OnFork&) = delete;
  OnFork& operator=(const OnFork&) = delete;

  void (*const before)();
  void (*const in_parent)();
  void (*const in_child)();
  OnFork* const next;
};

}  // namespace brasa
