#pragma once

#include <optional>
#include <string>
#include <vector>

#include <brasa/settings.h>

namespace brasa {

/// The variable's value, null where it is not set. Only what the table has can be read.
const char* environment(std::string_view name);
/// A number that is not negative; nothing for other text.
std::optional<double> number_in(std::string_view text);
/// brasa::Error unless the value is one of the words that the table names for this field of CompileOptions, or such a number as it asks for.
void check_compile_option(std::string_view name, std::string_view value);
/// The names in brackets behind this prefix: "options[" gives those of CompileOptions::options.
std::vector<std::string> compile_options(std::string_view prefix);

}  // namespace brasa
