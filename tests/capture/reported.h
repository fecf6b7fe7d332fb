#pragma once

#include <ostream>

#include "situations.h"

namespace brasa {

/// What somebody reported of torch.compile in a thread of pytorch/pytorch, written anew: the program must see the same compiled and not.
struct Reported {
  int thread;
  const char* about;
  void (*program)(const Wrap& compile, Seen& seen);
};
inline void PrintTo(const Reported& r, std::ostream* out) { *out << "pytorch#" << r.thread << ": " << r.about; }
inline std::string name_of(const testing::TestParamInfo<Reported>& info) {
  return "Thread" + std::to_string(info.param.thread);
}

class ReportedProgram : public testing::TestWithParam<Reported> {};

/// Calls f on what `inputs` gives for 0, 1, 2, …, and looks at the results, at what became of the inputs, and at their gradients if
/// there are some.
void see_calls(const Wrap& compile, Seen& seen, const TensorFunction& f, const std::function<Tensors(int)>& inputs,
               int calls = 3);

}  // namespace brasa
