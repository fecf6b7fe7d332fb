#pragma once

#include <string>

#include "capture/backend.h"

namespace brasa::capture {

/// The same backend (`name`), whose graphs are compared with the reference interpreter in their first run. A graph that fails there, or
/// when it is compiled, is minimised; `folder` gets its text and a program that shows the failure.
Backend minifying(Backend backend, const std::string& name, const std::string& folder);

}  // namespace brasa::capture
