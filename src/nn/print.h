#pragma once

namespace brasa::nn {

inline const char* word(bool b) { return b ? "true" : "false"; }

}  // namespace brasa::nn
