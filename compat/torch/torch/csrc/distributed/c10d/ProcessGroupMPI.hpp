#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

// Groups of processes, as far as one process goes: what an MPI program is that was started without mpirun. A group of several is
// brasa::Error when it is made.
namespace c10d {

struct AllreduceOptions {};
struct BroadcastOptions {
  int64_t rootRank = 0;
  int64_t rootTensor = 0;
};

class Work {
 public:
  bool isCompleted() const { return true; }
  bool isSuccess() const { return true; }
  bool wait() { return true; }
  void synchronize() {}
};

class ProcessGroup {
 public:
  using Work = ::c10d::Work;
  virtual ~ProcessGroup() = default;
  int getRank() const { return 0; }
  int getSize() const { return 1; }
  /// The sum, the mean or the greatest over one process is what it has.
  std::shared_ptr<Work> allreduce(std::vector<::brasa::Tensor>&, const AllreduceOptions& = {}) { return done(); }
  std::shared_ptr<Work> broadcast(std::vector<::brasa::Tensor>&, const BroadcastOptions& options = {}) {
    if (options.rootRank != 0)
      throw ::brasa::Error("broadcast: there is no rank " + std::to_string(options.rootRank) + " in a group of 1");
    return done();
  }
  std::shared_ptr<Work> barrier() { return done(); }

 private:
  static std::shared_ptr<Work> done() { return std::make_shared<Work>(); }
};

class ProcessGroupMPI : public ProcessGroup {
 public:
  static std::shared_ptr<ProcessGroupMPI> createProcessGroupMPI(std::vector<int> = {}) {
    // Open MPI, and the launchers of MPICH and Slurm.
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"})
      if (const char* size = std::getenv(name); size && std::string(size) != "1")
        throw ::brasa::Error(std::string("createProcessGroupMPI: this program was started as ") + size +
                             " processes (" + name + "), and Brasa has no communication between processes yet");
    return std::make_shared<ProcessGroupMPI>();
  }
  void abort() {}
};

}  // namespace c10d
