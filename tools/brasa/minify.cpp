#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include <brasa/brasa.h>
#include <brasa/minify.h>
#include <brasa/serialize.h>

#include "commands.h"

namespace brasa::tool {
namespace {

struct Options {
  std::string graph, inputs, out = "minified.cpp";
  GraphCheck check;
  bool json = false;
};

void run(Options o) {
  std::ifstream file(o.graph);
  if (!file) throw Error("minify: cannot read " + o.graph);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!o.inputs.empty()) {
    TensorDict tensors = load_tensors(o.inputs);
    for (size_t i = 0; i < tensors.size(); ++i) o.check.inputs.push_back(tensors.at("in" + std::to_string(i)));
  }
  Minified m = minify(text, o.check);
  std::ofstream out(o.out);
  out << reproducer(m);
  if (!out.flush()) throw Error("cannot write " + o.out);
  if (o.json)
    std::printf("%s\n",
                nlohmann::ordered_json{
                    {"failure", m.failure}, {"operators", m.operators}, {"graph", m.graph}, {"program", o.out}}
                    .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                    .c_str());
  else
    std::printf("%s\n%s%s shows it\n", m.failure.c_str(), m.graph.c_str(), o.out.c_str());
}

}  // namespace

void add_minify(CLI::App& app) {
  auto* c =
      app.add_subcommand("minify",
                         "Bisects a graph that fails or differs from the reference interpreter to the smallest that "
                         "still does, and writes a C++ program that shows it");
  c->footer(
      "The graph is text, as BRASA_LOGS=graph, explain and BRASA_MINIFY=DIR write it.\n"
      "Examples:\n  brasa minify graph.txt\n  brasa minify graph.txt --symbols 5,7 --backend aot_eager");
  auto o = std::make_shared<Options>();
  c->add_option("graph", o->graph, "A file with the graph's text")->required();
  c->add_option("--backend", o->check.backend, "What is compared with the interpreter")->capture_default_str();
  c->add_option("--inputs", o->inputs, "Safetensors file with in0, in1, …; else they are drawn");
  c->add_option("--symbols", o->check.symbols, "What s0, s1, … are")->delimiter(',');
  c->add_option("--seed", o->check.seed, "Of the inputs that are drawn")->capture_default_str();
  c->add_option("--tolerance", o->check.tolerance, "Relative to the largest value; 0: by dtype")->capture_default_str();
  c->add_option("--out", o->out, "The program")->capture_default_str();
  c->add_flag("--json", o->json, "One line of JSON");
  c->callback([o] { run(*o); });
}

}  // namespace brasa::tool
