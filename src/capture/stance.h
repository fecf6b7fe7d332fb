#pragma once

#include <string>

namespace brasa::capture {

/// What compiled functions do where no graph fits (see set_stance).
enum class Stance { Default, ForceEager, EagerOnRecompile, FailOnRecompile };
Stance stance();
/// brasa::Error with `reason` where the stance forbids another graph; false where it lets the call run uncompiled.
bool may_compile(const std::string& reason);

}  // namespace brasa::capture
