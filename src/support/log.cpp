#include "support/log.h"

#include <cstdio>

#include "support/settings.h"

namespace brasa {

bool logs(std::string_view topic) {
  const char* text = environment("BRASA_LOGS");
  if (!text) return false;
  for (std::string_view rest = text; !rest.empty();) {
    size_t comma = rest.find(',');
    if (rest.substr(0, comma) == topic) return true;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return false;
}

void log_line(std::string_view topic, const std::string& line) {
  std::fprintf(stderr, "[%.*s] %s\n", static_cast<int>(topic.size()), topic.data(), line.c_str());
}

}  // namespace brasa
