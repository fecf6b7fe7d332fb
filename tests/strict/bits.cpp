#include "strict/bits.h"

#include <cstring>

#include "support/str.h"

namespace brasa {

std::string difference(const std::vector<Tensor>& want, const std::vector<Tensor>& got) {
  if (want.size() != got.size()) return "another count";
  for (size_t k = 0; k < want.size(); ++k) {
    if (want[k].scalar_type() != got[k].scalar_type() || want[k].sizes() != got[k].sizes())
      return str("result ", k, ": another type or shape");
    Tensor a = want[k].contiguous(), b = got[k].contiguous();
    auto size = static_cast<size_t>(a.element_size());
    auto* p = static_cast<const char*>(a.data_ptr());
    auto* q = static_cast<const char*>(b.data_ptr());
    Tensor both_nan = a.isnan().logical_and(b.isnan()).contiguous();
    for (size_t i = 0; i < static_cast<size_t>(a.numel()); ++i)
      if (!both_nan.data_ptr<bool>()[i] && std::memcmp(p + i * size, q + i * size, size) != 0) {
        auto at = static_cast<int64_t>(i);
        return str("result ", k, ", element ", i, ": ", a.flatten()[at].item<double>(), " and ",
                   b.flatten()[at].item<double>());
      }
  }
  return "";
}

}  // namespace brasa
