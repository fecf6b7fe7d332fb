#pragma once

namespace brasa {

/// An object of each thread that may be asked for while the thread's objects are destroyed.
template <class T>
class ThreadObject {
 public:
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
    T object;
    Holder() { here_ = &object; }
    ~Holder() {
      here_ = nullptr;
      ended_ = true;
    }
  };
  // Plain, so that they can still be read when the holder is gone.
  static inline thread_local constinit T* here_ = nullptr;
  static inline thread_local constinit bool ended_ = false;
};

}  // namespace brasa
