#include <brasa/cache.h>

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"

namespace brasa::tool {
namespace {

std::string size_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB"};
  auto n = static_cast<double>(bytes);
  size_t unit = 0;
  for (; n >= 1024 && unit + 1 < std::size(kUnits); ++unit) n /= 1024;
  char out[40];
  std::snprintf(out, sizeof out, unit ? "%.1f %s" : "%.0f %s", n, kUnits[unit]);
  return out;
}

void show(bool json) {
  cache::Usage u = cache::usage();
  if (json) {
    std::printf("%s\n", nlohmann::json({{"folder", u.folder},
                                        {"entries", u.entries},
                                        {"bytes", u.bytes},
                                        {"old_entries", u.old_entries},
                                        {"old_bytes", u.old_bytes},
                                        {"limit", u.limit}})
                            .dump()
                            .c_str());
    return;
  }
  if (u.folder.empty()) {
    std::printf("no compiled kernels are kept: BRASA_CACHE_DIR is empty\n");
    return;
  }
  std::printf("%s\n%" PRId64 " entries of this version, %s\n%" PRId64 " of other versions, %s\nlimit %s\n",
              u.folder.c_str(), u.entries, size_text(u.bytes).c_str(), u.old_entries, size_text(u.old_bytes).c_str(),
              size_text(u.limit).c_str());
}

}  // namespace

void add_cache(CLI::App& app) {
  CLI::App* c = app.add_subcommand("cache", "Compiled kernels on disk: show, limit, clear, save, load");
  c->footer("Examples:\n  brasa cache limit 500M\n  brasa cache save kernels.bundle");
  auto json = std::make_shared<bool>(false);
  auto text = std::make_shared<std::string>();
  c->add_flag("--json", *json, "as JSON");
  c->require_subcommand(0, 1);
  c->final_callback([c, json] {
    if (c->get_subcommands().empty()) show(*json);
  });
  c->add_subcommand("show", "How many there are")->callback([json] { show(*json); });
  CLI::App* limit = c->add_subcommand("limit", "Remove what was used least recently");
  limit->add_option("size", *text, "bytes that may be left: 300, 20K, 20M, 2G")->required();
  limit->callback([text, json] {
    cache::trim(cache::parse_size(*text));
    show(*json);
  });
  c->add_subcommand("clear", "Remove all")->callback([json] {
    cache::trim(0);
    show(*json);
  });
  CLI::App* save = c->add_subcommand("save", "Write this version's kernels as one file");
  save->add_option("file", *text)->required();
  save->callback([text] { std::printf("%" PRId64 " entries\n", cache::save(*text)); });
  CLI::App* load = c->add_subcommand("load", "Add such a file's kernels, whose code will be run");
  load->add_option("file", *text)->required();
  load->callback([text] { std::printf("%" PRId64 " entries\n", cache::load(*text)); });
}

}  // namespace brasa::tool
