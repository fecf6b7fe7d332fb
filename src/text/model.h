#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace brasa::text {

/// Makes tokens of words, each of which it looks at by itself.
class Model {
 public:
  virtual ~Model() = default;
  /// The numbers of their tokens go to the end of `ids`.
  virtual void encode(std::span<const std::string_view> words, std::vector<int64_t>& ids) const = 0;
};

}  // namespace brasa::text
