#pragma once

#include <functional>

namespace brasa {

/// Runs f on this thread, on a stack of its own as large as a thread's usual one: for recursions whose depth the user's program
/// decides. What f throws is thrown here.
void on_fresh_stack(const std::function<void()>& f);

}  // namespace brasa
