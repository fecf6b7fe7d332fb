#include "compiler/libraries/step.h"

#include "compiler/libraries/operands.h"
#include "support/error.h"

namespace brasa::compiler {

LibraryStep::LibraryStep(const Group& group) {
  const ir::Node& n = *group.graph->outputs()[0].value.node;
  how_ = group.library;
  BRASA_ASSERT(how_, "no library computes ", n.op->name());
  auto add = [&](const ir::Type& t) {
    Tensor tensor{t.dtype, {}};
    for (ir::Expr e : t.shape) tensor.sizes.emplace_back(e);
    tensors_.push_back(std::move(tensor));
  };
  n.for_each_input([&](ir::Value v) {
    operands_.push_back(input_of(group, v));
    add(type_of(v));
  });
  for (const ir::Type& t : n.types) add(t);
  for (const ir::Arg& a : n.args) {
    bool operand = false;
    a.for_each_value([&](ir::Value) { operand = true; });
    args_.push_back(operand ? ir::Arg() : a);
  }
}

size_t LibraryStep::bytes_of(size_t tensor, const int64_t* symbols) const {
  int64_t bytes = size_of(tensors_[tensor].dtype);
  for (const SizeProgram& s : tensors_[tensor].sizes) bytes *= s(symbols);
  return static_cast<size_t>(bytes);
}

void LibraryStep::run(void* const* tensors, const int64_t* symbols) const {
  std::vector<std::vector<int64_t>> sizes(tensors_.size());
  std::vector<LibraryTensor> all(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    for (const SizeProgram& s : tensors_[i].sizes) sizes[i].push_back(s(symbols));
    all[i] = {tensors[i], tensors_[i].dtype, sizes[i]};
  }
  std::span<const LibraryTensor> span = all;
  how_->run({args_, span.first(operands_.size()), span.subspan(operands_.size()), symbols});
}

}  // namespace brasa::compiler
