#include "import/number.h"

#include <brasa/call.h>

#include "support/error.h"
#include "tensor/known_sizes.h"
#include "tensor/recorder.h"

namespace brasa::import {

Tensor Number::element(DType dtype) const {
  BRASA_ASSERT(varies(), "a number that varies");
  // Of the recording itself, also where a graph within the graph reads it: there it is an operand.
  Recorder::Scope scope(by->recorder());
  if (!computed) {
    std::vector<NamedArg> options = {{"dtype", dtype}};
    return call("aten::full", {IntArrayRef(), named_argument(*this)}, options).at(0);
  }
  if (!computed->made.defined()) computed->made = computed->make();
  return computed->made.to(dtype);
}

CallArg named_argument(const Number& n) {
  BRASA_CHECK(!n.of_values || n.size,
              "a size or a place is a number that depends on values, but is no integer made of them");
  CallArg out(n.value.toLong());
  if (!n.size || !n.by) return out;
  out.size = n.by->name_of(*n.size);
  out.named = out.size != 0;
  return out;
}

}  // namespace brasa::import
