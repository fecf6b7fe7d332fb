#include "import/frame.h"
#include "support/error.h"
#include "support/lazy.h"

// Operators that Python libraries register for their models.
namespace brasa::import {
namespace {

// transformers' mixture of experts: input [rows, in], its rows sorted by expert; weight [experts, in, out]; where the rows of each expert end.
void grouped_mm(Frame& f, const Node& n) {
  f.set(n, 0, _grouped_mm(f.tensor(f.argument(n, 0)), f.tensor(f.argument(n, 1)), f.tensor(f.argument(n, 2))));
}

}  // namespace

Handler library_handler(const std::string& target) {
  static constinit Lazy<Handlers> kTable([] {
    return Handlers{
        {"torch.ops.transformers.grouped_mm_fallback.default", grouped_mm},
    };
  });
  return find(*kTable, target);
}

}  // namespace brasa::import
