#pragma once

#include <string>
#include <string_view>

namespace brasa {

/// Whether BRASA_LOGS, a list with commas, has this topic.
bool logs(std::string_view topic);
/// Writes a line to the error stream.
void log_line(std::string_view topic, const std::string& line);

}  // namespace brasa
