#include "support/json.h"

#include "support/error.h"

namespace brasa {

nlohmann::json parse_json(std::string_view text, const std::string& source, int depth) {
  using Json = nlohmann::json;
  auto depth_ok = [&](int at, Json::parse_event_t, Json&) {
    BRASA_CHECK(at <= depth, source, ": JSON that nests too deep");
    return true;
  };
  Json out = Json::parse(text.data(), text.data() + text.size(), depth_ok, /*allow_exceptions=*/false);
  BRASA_CHECK(!out.is_discarded(), source, ": it is no JSON");
  return out;
}

}  // namespace brasa
