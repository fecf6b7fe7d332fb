#pragma once

namespace brasa::pack {

/// Calls each common operator on each common signature once.
void call_common_operators();

}  // namespace brasa::pack
