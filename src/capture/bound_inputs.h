#pragma once

#include <vector>

#include "capture/storage_table.h"
#include "capture/trace.h"

namespace brasa::capture {

/// The tensors from outside that one recording has read so far, in order, and found again by their memory.
class BoundInputs {
 public:
  struct Bound {
    Tensor tensor;
    Number number;
    int before;        // the one before it that reads the same memory, or -1
    uint64_t content;  // of a module's tensor: Storage::content as it was met
  };

  void add(const Tensor& tensor, Number number);
  /// This tensor is about to move: its place from now on is a copy's.
  void keep(const Tensor& tensor);
  void clear();

  size_t size() const { return inputs_.size(); }
  const Bound& operator[](size_t i) const { return inputs_[i]; }
  auto begin() const { return inputs_.begin(); }
  auto end() const { return inputs_.end(); }

  /// The last one that reads this tensor's memory, or -1; `before` leads to the others.
  int last_of(const TensorImpl& t) const;
  /// The one that lies exactly as this tensor, or null.
  const Bound* same_as(const TensorImpl& t) const;

 private:
  struct Last {
    int at = -1;
  };
  std::vector<Bound> inputs_;
  StorageTable<Last> last_;  // that reads a storage
};

}  // namespace brasa::capture
