#include "support/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "support/error.h"

namespace brasa {
namespace {

using Where = Setting::Where;

constexpr Setting
    kSettings[] =
        {
            {Where::Environment, "BRASA_LOGS", "<topics, separated by commas>",
             "Writes what happens to the error stream. Topics: graph, groups, plan, fusion, loops, tune, code, cache, recompiles."},
            {Where::Environment, "BRASA_NUM_THREADS", "<1 to 4096>",
             "Threads that compute; else as many as the process may use processors."},
            {Where::Environment, "BRASA_CACHE_DIR", "<folder>",
             "Where compiled kernels are kept; empty: nowhere. Else XDG_CACHE_HOME/brasa."},
            {Where::Environment, "BRASA_CACHE_LIMIT", "<bytes, or with K, M or G>",
             "How much they take at most; what was used least recently goes. Else 2G."},
            {Where::Environment, "XDG_CACHE_HOME", "<folder>", "The user's folder of caches; else HOME/.cache."},
            {Where::Environment, "HOME", "<folder>",
             "The user's folder; without it and the two above no kernels are kept."},
            {Where::Environment, "BRASA_CPU_TARGET",
             "x86-64 | x86-64+avx2 | x86-64+avx512 | x86-64+avx512+vnni | x86-64+avx512+bf16 | x86-64+avx512+bf16+amx",
             "The instructions that kernels use; else those that are fastest on this processor."},
            {Where::Environment, "BRASA_EAGER_BACKEND", "inductor | interpreter",
             "What runs the operators outside of compiled functions."},
            {Where::Environment, "BRASA_NUMBERS", "strict | default | fast",
             "How operators outside of compiled functions round, and what options[numbers] and an export's numbers are unless they are given. "
             "With strict a compiled function on a CPU gives the bits of the uncompiled one (compile.md says where it does not)."},
            {Where::Environment, "BRASA_TIERS", "both | baseline | optimized",
             "Which code kernels of the CPU have: both, the default, begins with baseline code, which is made quickly, where a run is short, and optimizes what has run for a while. Results are the same to the bit."},
            {Where::Environment, "BRASA_CODEGEN", "<file>",
             "The code generator's library; else libbrasa-codegen.so beside the library."},
            {Where::Environment, "BRASA_CC", "<program>",
             "What links exported programs; else cc, for AArch64 aarch64-linux-gnu-gcc."},
            {Where::Environment, "BRASA_PTXAS", "<program>",
             "What makes a GPU's machine code in exported programs; else ptxas. Where it is not there, they have PTX alone."},
            {Where::Environment, "BRASA_PACK", "<file>",
             "The kernels that ship with the library; else brasa/pack.bin beside it."},
            {Where::Environment, "BRASA_DISABLE_PASSES", "<passes, separated by commas>",
             "Leaves optional passes over graphs out, by their names. along_rows: who reads a large value and sums of its rows does not come first where kernels are joined; below_padding: padded copies of what windows read are made; cached_rows: blocks that walk along rows twice have 256 threads; fold_steps: steps of a convolution of few channels stay; keep_graphs: no assembled graph is read from the disk cache or written there; kept_rows: rows too long for registers are read in each pass; large_sizes: kernels compute sizes that nest, however large these expressions are; masked_attention: attention with a mask is composed; narrow_results: reductions go to memory before they are narrowed; rows_beside: a thread has one short row; run_ahead: kernels wait until a call is recorded; share_launches: every kernel is a launch of its own; share_products: with max-autotune equal products do not wait for each other; spare_memory: without a memory budget a whole step computes nothing again; sum_columns: sums of columns have kernels of their own; tiles: no copy goes through shared memory; whole_operators: attention is composed everywhere; windows: kernels that differ in where an operand begins are several."},
            {Where::Environment, "BRASA_MINIFY", "<folder>",
             "Compares each graph of compiled functions with the reference interpreter in its first run; of one that fails the folder gets the smallest part that does, as a C++ program."},
            {Where::Environment, "BRASA_DEVICE", "<device>",
             "Where tensors are made unless their options say otherwise: cpu, cuda, cuda:1, emu; else cpu."},
            {Where::Environment, "BRASA_CUDA_LIBRARIES", "<folders, separated by colons>",
             "Where NVIDIA's libraries (libcuda, libcublasLt, libcudnn) are looked for first."},
            {Where::Environment, "BRASA_EMU_LIBRARIES", "cublaslt,cudnn",
             "A GPU's libraries that the emulated one uses as well: they must be made for that, as tests' are."},
            {Where::Environment, "CUDA_HOME", "<folder>",
             "The CUDA toolkit: where they are looked for behind the system's folders; else /usr/local/cuda."},
            {Where::Environment, "OPENBLAS_CORETYPE", "<processor>",
             "The processor that OpenBLAS computes for, where it is the system's LAPACK; else SkylakeX with AVX-512, Haswell with AVX2, as old versions take new processors for the oldest."},
            {Where::Environment, "OPENBLAS_NUM_THREADS", "<number>",
             "OpenBLAS' own threads; else 1, as matrices are computed side by side."},
            {Where::Environment, "PATH", "<folders, separated by colons>",
             "Where Pythons are, whose nvidia packages are looked at last."},
            {Where::CompileOptions, "fullgraph", "false | true", "A graph break is an error."},
            {Where::CompileOptions, "backend", "<name or function>",
             "What compiles: inductor, aot_eager, eager, interpreter, a registered one, or a function."},
            {Where::CompileOptions, "mode", "default | reduce-overhead | max-autotune | max-autotune-no-cudagraphs", "The latter two: libraries measure the ways that they know once, and keep the choices on disk, and kernels of the CPU are compiled with other schedules, of which the fastest stays. reduce-overhead and max-autotune: a GPU keeps the launches of a graph's run and gets them as one call (CUDA's graphs)."},
            {Where::CompileOptions, "disable", "false | true", "Call the function as it is."},
            {Where::CompileOptions, "dynamic", "<unset, false or true>",
             "When sizes become symbolic: at their second value, never, at once."},
            {Where::CompileOptions, "recompile_limit", "<number>",
             "Graphs that are kept for one place of the function."},
            {Where::CompileOptions, "pure", "false | true",
             "The promise that the body may be skipped in calls like earlier ones: no effects but through tensors, no dependence but on arguments and the tensors that it met."},
            {Where::CompileOptions, "options[numbers]", "strict | default | fast",
             "strict: products and sums are rounded one by one. default: they may be one operation. fast: besides, a division may be a product "
             "with the reciprocal, and the sign of a zero may be lost. Of inductor."},
            {Where::CompileOptions, "options[fall_back]", "true | false",
             "Calls that keep doing the same are timed against some that run as they are; where those are faster, calls run as they are. Else with inductor, "
             "unless numbers are strict."},
            {Where::CompileOptions, "options[tune_seconds]", "<number>",
             "With max-autotune, so long schedules of a graph's kernels, and ways of a GPU's libraries, are measured; what is left then has the usual ones. Else 20. Of inductor."},
            {Where::CompileOptions, "options[memory_budget]", "<number>",
             "From 0 to 1: the part of the memory for values that wait for the backward pass, beyond what has to be there, that is used; less takes longer, as "
             "more is computed again. Else computed again is what costs next to nothing; in a whole step where all then takes clearly less, but of a GPU not with max-autotune. Of inductor."},
            {Where::CompileOptions, "options[trace_nan]", "false | true",
             "Operators run one by one; the first that makes a NaN of values without one is an error that names it. Slow. Of inductor."},
};

std::string_view place(Where where) {
  return where == Where::Environment ? "Environment variables" : "compile's options";
}

const Setting* find(Where where, std::string_view name) {
  const auto* found = std::find_if(std::begin(kSettings), std::end(kSettings),
                                   [&](const Setting& s) { return s.where == where && s.name == name; });
  return found == std::end(kSettings) ? nullptr : found;
}

}  // namespace

std::span<const Setting> settings() { return kSettings; }

std::string settings_text(bool markdown) {
  std::string out =
      markdown ? "# Settings\nWritten by `brasa settings --markdown` from the table in src/support/settings.cpp.\n\n"
               : "";
  for (Where where : {Where::Environment, Where::CompileOptions}) {
    out += markdown ? str("## ", place(where), "\n| name | values | what it does |\n| --- | --- | --- |\n")
                    : str(place(where), ":\n");
    for (const Setting& s : kSettings) {
      if (s.where != where) continue;
      std::string values;
      for (char c : s.values) {
        if (markdown && c == '|') values += '\\';
        values += c;
      }
      out += markdown ? str("| `", s.name, "` | `", values, "` | ", s.doc, " |\n")
                      : str("  ", s.name, "=", values, "\n      ", s.doc, "\n");
    }
    if (where == Where::Environment) out += "\n";
  }
  return out;
}

const char* environment(std::string_view name) {
  const Setting* row = find(Where::Environment, name);
  BRASA_ASSERT(row, "the table of settings lacks the variable ", name);
  return std::getenv(row->name.data());
}

std::optional<double> number_in(std::string_view text) {
  double n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end == text.data() + text.size() && n >= 0 ? std::optional(n) : std::nullopt;
}

void check_compile_option(std::string_view name, std::string_view value) {
  const Setting* row = find(Where::CompileOptions, name);
  BRASA_ASSERT(row, "the table of settings lacks the option ", name);
  constexpr std::string_view kBetween = " | ";
  if (row->values == "<number>" && number_in(value)) return;
  for (std::string_view rest = row->values;;) {
    size_t end = rest.find(kBetween);
    if (rest.substr(0, end) == value) return;
    if (end == rest.npos) break;
    rest.remove_prefix(end + kBetween.size());
  }
  fail(str("compile: ", name, " '", value, "' is not known; it can be ", row->values));
}

std::vector<std::string> compile_options(std::string_view prefix) {
  std::vector<std::string> out;
  for (const Setting& s : kSettings)
    if (s.where == Where::CompileOptions && s.name.substr(0, prefix.size()) == prefix)
      out.emplace_back(s.name.substr(prefix.size(), s.name.size() - prefix.size() - 1));
  return out;
}

}  // namespace brasa
