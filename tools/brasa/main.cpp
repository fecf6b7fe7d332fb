#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include <brasa/settings.h>

#include "commands.h"

int main(int argc, char** argv) {
  CLI::App app{"Brasa's command line"};
  app.require_subcommand(1);
  try {
    brasa::tool::add_run(app);
    brasa::tool::add_info(app);
    brasa::tool::add_export(app);
    brasa::tool::add_verify(app);
    brasa::tool::add_bench(app);
    brasa::tool::add_explain(app);
    brasa::tool::add_minify(app);
    brasa::tool::add_tokens(app);
    brasa::tool::add_settings(app);
    brasa::tool::add_cache(app);
    brasa::tool::add_doctor(app);
    app.parse(argc, argv);
  } catch (const CLI::Error& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "brasa: %s\n", e.what());
    return 1;
  }
  return 0;
}
