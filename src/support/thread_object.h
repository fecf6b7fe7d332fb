#pragma once

#include <memory>

#include "support/thread_word.h"

namespace brasa {

/// An object of each thread, on the heap, that may be asked for while the thread's objects are destroyed.
template <class T>
class ThreadObject {
 public:
  /// This thread's, if it was asked for before; null once it is gone.
  static T* known() { return here_; }
  /// This thread's, made when it is first asked for; null once it is gone.
  static T* get() {
    if (T* known = here_) [[likely]]
      return known;
    if (ended_) return nullptr;
    static thread_local Holder holder;
    return here_;
  }

 private:
  struct Holder {
    std::unique_ptr<T> object = std::make_unique<T>();
    Holder() { here_ = object.get(); }
    ~Holder() {
      here_ = nullptr;
      ended_ = true;
    }
  };
  // Plain, so that they can still be read when the holder is gone.
  BRASA_THREAD_WORD static inline T* here_ = nullptr;
  BRASA_THREAD_WORD static inline bool ended_ = false;
};

}  // namespace brasa
