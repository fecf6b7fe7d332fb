// Code generators that are not there, of another build, or fail: a clear error, or the code that there is; each in a process of its own.
#include <brasa/threads.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernels/baseline.h"
#include "compiler/kernels/codegen_client.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/optimizer.h"
#include "compiler/pipeline.h"
#include "compiler/run/compiled.h"
#include "ops/algebra.h"
#include "runtime/device.h"
#include "support/error.h"
#include "support/str.h"

namespace brasa::compiler {
namespace {

namespace fs = std::filesystem;
using ops::operator*;

std::vector<float> run(const CompiledGraph& graph) {
  std::vector<float> x = {0, 0.25F, 0.5F}, out(3);
  const int64_t n = 3, one = 1;
  const std::span<const int64_t> sizes(&n, 1), strides(&one, 1);
  Operand in{x.data(), DType::Float32, sizes, strides}, result{out.data(), DType::Float32, sizes, strides};
  graph.run(nullptr, {&in, 1}, {&result, 1});
  return out;
}

// exp(x) * number, so that each number is another kernel.
std::shared_ptr<const CompiledGraph> compiled_for(double number) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  ir::Value x = graph.add_input({DType::Float32, {ir::Expr(3)}, false}, "");
  {
    ops::Builder builder(graph, facts);
    graph.add_output(ops::exp(x) * number);
  }
  return std::dynamic_pointer_cast<const CompiledGraph>(compile(graph, facts));
}

std::string program() {
  auto compiled = compiled_for(1.5);
  std::vector<float> first = run(*compiled);
  set_num_threads(2);
  compiled->optimize(false);
  wait_for_optimizer();
  bool same = run(*compiled) == first;
  std::string later;
  try {
    compiled->optimize(true);
  } catch (const InternalError&) {
    later = ", an internal error later";
  }
  return str("ran", same && run(*compiled) == first ? "" : " with other results",
             compiled->baseline_kernels() > 0 ? ", baseline" : "", later);
}

template <class F>
void report(const std::string& path, F what) {
  std::ofstream out(path);
  try {
    out << what();
  } catch (const InternalError& e) {
    out << "InternalError: " << e.what();
  } catch (const Error& e) {
    out << "Error: " << e.what();
  }
}

// A process that is asked for does this and no more. What it does as it exits comes behind what the code generator does, if that was
// loaded before.
void answer(const char* path) {
  static std::string told = path;
  const char* when = std::getenv("BRASA_TEST_AT_EXIT");
  if (!when) return report(told, program);
  std::atexit([] { report(told, [] { return run(*compiled_for(2.5)).size() == 3 ? "ran" : ""; }); });
  if (std::string_view(when) == "late") compiled_for(1.5);
}

class CodeGenerator : public testing::Test {
 protected:
  CodeGenerator() {
    std::string name = testing::TempDir() + "brasa-codegen-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~CodeGenerator() override { fs::remove_all(folder_); }

  std::string said(const std::string& library, const char* failure = "", const char* at_exit = nullptr) {
    std::string path = folder_ / "report", command;
    auto set = [&](const char* name, const std::string& value) { command += str(name, "='", value, "' "); };
    set("BRASA_CODEGEN", library);
    set("BRASA_REAL_CODEGEN", codegen_path());
    set("BRASA_FAKE_CODEGEN", failure);
    set("BRASA_PACK", folder_ / "no pack");
    set("BRASA_CACHE_DIR", folder_ / "cache");
    set("BRASA_TEST_REPORT", path);
    if (at_exit) set("BRASA_TEST_AT_EXIT", at_exit);
    command += str("timeout 60 '", fs::read_symlink("/proc/self/exe").string(),
                   "' --gtest_filter=CodeGenerator.FailsClearly > /dev/null");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string of_fake(const char* failure) { return said(BRASA_FAKES "/codegen.so", failure); }

 private:
  fs::path folder_;
};

TEST_F(CodeGenerator, FailsClearly) {
  if (const char* path = std::getenv("BRASA_TEST_REPORT")) return answer(path);
  struct Case {
    std::string said;
    const char *kind, *words;
  };
  for (const auto& [said, kind, words] : std::vector<Case>{
           {this->said("/nowhere/libbrasa-codegen.so"), "Error: ", "could not be loaded"},
           {this->said(__FILE__), "Error: ", "could not be loaded"},
           {this->said("libm.so.6"), "Error: ", "is not Brasa's code generator"},
           {of_fake("other version"), "Error: ", "belongs to another build"},
           {of_fake("other build"), "Error: ", "belongs to another build"},
           {of_fake("refuses"), "Error: ", "no code for this kernel"},
           {of_fake("breaks"), "InternalError: ", "code generator: a pass broke the graph"},
           {of_fake("garbage"), "Error: ", "image"},
           {of_fake("silence"), "Error: ", "image"},
       })
    EXPECT_TRUE(said.starts_with(kind) && said.find(words) != said.npos) << kind << words << ", but it said: " << said;
}

// The thread that optimizes gets the error: what there is runs on. Who waits for optimized code is told of a bug.
TEST_F(CodeGenerator, BaselineCodeRunsOnWhereNoneIsOptimized) {
  if (!has_baseline("", runtime::host().properties().code)) GTEST_SKIP() << "kernels are optimized at once";
  EXPECT_EQ(of_fake("refuses to optimize"), "ran, baseline");
  EXPECT_EQ(of_fake("breaks as it optimizes"), "ran, baseline, an internal error later");
  EXPECT_EQ(of_fake(""), "ran");
}

// Static objects that compute as they are destroyed.
TEST_F(CodeGenerator, IsThereOrIsAnErrorAsTheProcessExits) {
  EXPECT_NE(said(codegen_path(), "", "late").find("the program is exiting"), std::string::npos);
  EXPECT_EQ(said(codegen_path(), "", "early"), "ran");
}

TEST_F(CodeGenerator, IsNotNeededForWhatTheCacheHas) {
  EXPECT_EQ(of_fake(""), "ran");
  EXPECT_EQ(said("/nowhere/libbrasa-codegen.so"), "ran");
}

}  // namespace
}  // namespace brasa::compiler
