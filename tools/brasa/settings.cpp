#include <brasa/settings.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "commands.h"

namespace brasa::tool {

void add_settings(CLI::App& app) {
  CLI::App* c = app.add_subcommand("settings", "Show the environment variables and the options of compile");
  auto markdown = std::make_shared<bool>(false);
  c->add_flag("--markdown", *markdown, "as docs/settings.md has them");
  c->callback([markdown] { std::fputs(settings_text(*markdown).c_str(), stdout); });
}

}  // namespace brasa::tool
