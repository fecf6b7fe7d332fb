#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace brasa {

/// JSON that somebody else wrote, nested `depth` deep at most. brasa::Error that begins with `source` for what is none.
nlohmann::json parse_json(std::string_view text, const std::string& source, int depth);

}  // namespace brasa
