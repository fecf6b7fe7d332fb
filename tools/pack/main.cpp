#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "calls.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/pack.h"
#include "runtime/cpu/features.h"

using namespace brasa;

namespace {

// Instruction sets that are packed, where this machine can run them.
const char* const kTargets[] = {"x86-64+avx512", "x86-64+avx2"};

// A process decides once which instructions it uses, so each target has its own.
void write_part(const std::string& target, const std::string& path) {
  setenv("BRASA_CPU_TARGET", target.c_str(), 1);
  auto start = std::chrono::steady_clock::now();
  compiler::record_pack();
  pack::call_common_operators();
  compiler::write_pack(path);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{}: {} kernels, {} kB, {:.1f} s\n", target, compiler::kernel_counts().compiled,
             std::filesystem::file_size(path) / 1000, seconds);
}

int run(const std::string& out) {
  std::vector<std::string> parts;
  for (const char* target : kTargets) {
    if (!runtime::cpu::supports(target)) continue;
    parts.push_back(fmt::format("{}.{}", out, parts.size()));
    pid_t child = fork();
    if (child == 0) {
      try {
        write_part(target, parts.back());
        std::fflush(stdout);
        _exit(0);
      } catch (const std::exception& e) {
        fmt::print(stderr, "brasa-pack: {}: {}\n", target, e.what());
        _exit(1);
      }
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  compiler::join_packs(parts, out);
  for (const std::string& p : parts) std::filesystem::remove(p);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compiles the common operators' kernels into one file");
  std::string out;
  app.add_option("--out", out, "the file")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(out);
  } catch (const std::exception& e) {
    fmt::print(stderr, "brasa-pack: {}\n", e.what());
    return 1;
  }
}
