#pragma once

namespace CLI {
class App;
}

namespace brasa::tool {

// Each subcommand adds itself to the application, in a file of its own.
void add_verify(CLI::App& app);
void add_verify_training(CLI::App& verify);
void add_verify_checkpoints(CLI::App& verify);
void add_verify_models(CLI::App& verify);
void add_run(CLI::App& app);
void add_info(CLI::App& app);
void add_export(CLI::App& app);
void add_bench(CLI::App& app);
void add_explain(CLI::App& app);
void add_minify(CLI::App& app);
void add_tokens(CLI::App& app);
void add_settings(CLI::App& app);
void add_cache(CLI::App& app);
void add_doctor(CLI::App& app);

}  // namespace brasa::tool
