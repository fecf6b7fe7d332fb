#include "import/frame.h"
#include "support/error.h"

// Operators that Python libraries register for their models.
namespace brasa::import {
namespace {

// transformers' mixture of experts: input [rows, in], its rows sorted by expert; weight [experts, in, out]; where the rows of each expert
// end. The counts are read, which ends a graph while `compile` records.
void grouped_mm(Frame& f, const Node& n) {
  Tensor input = f.tensor(f.argument(n, 0)), weight = f.tensor(f.argument(n, 1)),
         ends = f.tensor(f.argument(n, 2)).to(Device(kCPU), kInt64).contiguous();
  BRASA_CHECK(input.dim() == 2 && weight.dim() == 3 && ends.dim() == 1 && ends.size(0) == weight.size(0),
              "expected rows, a matrix for each expert and the end of each expert's rows, got ", input.sizes(), ", ",
              weight.sizes(), " and ", ends.sizes());
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (int64_t i = 0; i < ends.size(0); ++i) {
    int64_t end = ends.data_ptr<int64_t>()[i];
    BRASA_CHECK(end >= begin && end <= input.size(0), "the rows of expert ", i, " end at ", end);
    if (end > begin) parts.push_back(input.slice(0, begin, end).mm(weight.select(0, i)));
    begin = end;
  }
  if (begin < input.size(0)) parts.push_back(input.new_zeros({input.size(0) - begin, weight.size(2)}));
  f.set(n, 0, parts.empty() ? input.new_zeros({0, weight.size(2)}) : cat(parts));
}

}  // namespace

Handler library_handler(const std::string& target) {
  static const Handlers kTable{
      {"torch.ops.transformers.grouped_mm_fallback.default", grouped_mm},
  };
  return find(kTable, target);
}

}  // namespace brasa::import
