#pragma once

#include "support/json.h"
#include "text/pipeline.h"

namespace brasa::text {

using Json = nlohmann::json;

/// From a `tokenizer.json`.
std::shared_ptr<const Pipeline> pipeline_of(std::string_view json, const std::string& source);

/// {"token": number, …}. brasa::Error that begins with `source`.
void read_vocabulary(const Json& j, Vocabulary& out, const std::string& source);

}  // namespace brasa::text
