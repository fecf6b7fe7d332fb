#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include <brasa/error.h>
#include <brasa/tokenizer.h>

#include "commands.h"

namespace brasa::tool {
namespace {

using nlohmann::json;

std::string bytes_of(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// A text as JSON, or an object: text (or bytes as hex), the second text `pair` in the same form, max_length, truncation_side.
json answer(const text::Tokenizer& tokenizer, const json& request) {
  bool hex = request.is_object() && request.contains("hex");
  auto given = [&](const char* name) {
    std::string value = request.at(name).get<std::string>();
    return hex ? bytes_of(value) : value;
  };
  text::EncodeOptions options;
  std::string first = request.is_string() ? request.get<std::string>() : given(hex ? "hex" : "text");
  bool pair = request.is_object() && request.contains("pair");
  if (request.is_object() && request.contains("max_length")) options.max_length = request["max_length"].get<int64_t>();
  if (request.is_object() && request.value("truncation_side", "right") == "left")
    options.truncation_side = text::Side::Left;
  text::Encoding e = pair ? tokenizer.encode(first, given("pair"), options) : tokenizer.encode(first, options);
  return {{"ids", e.ids},
          {"type_ids", e.type_ids},
          {"text", tokenizer.decode(e.ids, true)},
          {"all", tokenizer.decode(e.ids)}};
}

void tokens(const std::string& path) {
  text::Tokenizer tokenizer = text::Tokenizer::load(path);
  for (std::string line; std::getline(std::cin, line);) {
    json request = json::parse(line, nullptr, false);
    if (!request.is_object() && !request.is_string())
      throw Error("a line that is neither a text nor an object: " + line);
    std::cout << answer(tokenizer, request).dump() << '\n';
  }
}

}  // namespace

void add_tokens(CLI::App& app) {
  auto* sub = app.add_subcommand(
      "tokens", "Texts from the standard input as tokens of GPT-2's or BERT's kind, a line of JSON each");
  auto path = std::make_shared<std::string>();
  sub->add_option("tokenizer", *path,
                  "tokenizer.json, or a folder with it, with vocab.json and merges.txt, or with vocab.txt")
      ->required();
  sub->callback([path] { tokens(*path); });
}

}  // namespace brasa::tool
