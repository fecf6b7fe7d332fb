#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <brasa/dtype.h>

#include "compiler/pipeline.h"
#include "export/captured.h"

namespace brasa::exporting {

/// What the caller of the program gives: sizes that are fixed, or within bounds, some of them equal to an earlier one.
struct InputType {
  std::string name;
  DType dtype;
  struct Size {
    int64_t least, greatest;
    int same_input = -1, same_dim = -1;  // which has to be equal
    std::string symbol = {};             // of which the size is factor · symbol + offset
    int64_t factor = 1, offset = 0;
    bool fixed() const { return least == greatest; }
  };
  std::vector<Size> sizes;
};
struct OutputType {
  DType dtype;
  int64_t rank;
};

/// A tensor of the program's state: what the function changes, and what the user lists as such. Where two names are one memory there are two of these.
struct StateTensor {
  std::string name;
  Tensor tensor;
};

/// A program's plan for one level of processors and the sizes for which its facts hold, and the integers that it reads.
struct Variant {
  int level;
  const Captured* captured;
  std::vector<ir::Fact> facts;
  std::string target;
  std::vector<bool> lasting;             // by input of the graph: what is made of it alone is made once
  std::vector<compiler::Portable> code;  // by stage
};

/// What goes into the object beside the runtime (alone/runtime.c), which says how the plan is read.
struct Sections {
  std::string code, plan, text, weights;  // weights: the whole file's bytes
  int64_t weight_bytes = 0, state_bytes = 0, prepared_bytes = 0;
  int64_t memory_bytes = -1;  // of a run on one thread, where no size varies
  bool gpu = false;
  bool calls = false;  // functions of the runtime
};

Sections write_sections(const std::vector<InputType>& inputs, const std::vector<OutputType>& outputs,
                        const std::vector<StateTensor>& state, const std::vector<Variant>& variants, bool gpu);

}  // namespace brasa::exporting
