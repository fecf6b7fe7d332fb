#include "support/checked.h"

#include "support/error.h"

namespace brasa {

void fail_overflow(int64_t a, char operation, int64_t b) {
  fail(str("a size does not fit into 64 bits: ", a, " ", operation, " ", b));
}

}  // namespace brasa
