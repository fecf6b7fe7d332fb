#pragma once

#include <string>
#include <vector>

#include <brasa/settings.h>

namespace brasa {

/// The variable's value, null where it is not set. Only what the table has can be read.
const char* environment(std::string_view name);
/// brasa::Error unless the value is one of the words that the table names for this field of CompileOptions.
void check_compile_option(std::string_view name, std::string_view value);
/// The names in brackets behind this prefix: "options[" gives those of CompileOptions::options.
std::vector<std::string> compile_options(std::string_view prefix);

}  // namespace brasa
