#pragma once

#include <mutex>

namespace brasa {

/// The lock of something that lives as long as the process. No thread holds it while the process forks, so that the child finds it open
/// and whole what it guards. A fork waits a second at most for those that hold one.
class ProcessMutex : public std::mutex {
 public:
  ProcessMutex();
};

}  // namespace brasa
