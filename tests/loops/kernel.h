#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "compiler/kernels/baseline.h"
#include "compiler/kernels/codegen_client.h"
#include "compiler/loops/builder.h"
#include "compiler/loops/layout.h"
#include "ir/text.h"
#include "runtime/cpu/code.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/launch.h"

namespace brasa::compiler::test {

using ir::Expr;
using ir::Value;

/// The CPU targets that this machine runs.
inline std::vector<std::string> targets() {
  std::vector<std::string> out;
  for (const char* t :
       {"x86-64", "x86-64+avx2", "x86-64+avx512", "x86-64+avx512+vnni", "x86-64+avx512+bf16", "x86-64+avx512+bf16+amx"})
    if (runtime::cpu::supports(t)) out.emplace_back(t);
  return out;
}

/// A loop graph under construction, then a kernel that runs.
class Kernel {
 public:
  explicit Kernel(std::string name = "kernel") : graph(ir::Level::Loops), b(graph) { graph.name = std::move(name); }

  Value f32(Expr n) { return b.buffer(DType::Float32, n); }

  void compile(const std::string& target) {
    std::string text = ir::print(graph);
    code = runtime::cpu::load(compile_kernel_texts({&text, 1}, target));
    layout = layout_of(graph);
    baseline = nullptr;
    if (has_baseline(text, target))
      baseline = runtime::cpu::load(compile_kernel_texts({&text, 1}, target + ";baseline"));
  }

  void run(std::vector<void*> buffers, std::vector<int64_t> sizes = {}, int64_t grain = 1) {
    auto value = [&](const ir::ExprNode& s) {
      for (size_t i = 0; i < layout.sizes.size(); ++i)
        if (layout.sizes[i].node() == &s) return sizes.at(i);
      ADD_FAILURE() << "a symbol that is no size";
      return int64_t{0};
    };
    std::vector<runtime::Slot> slots;
    for (void* b : buffers) slots.push_back(reinterpret_cast<runtime::Slot>(b));
    slots.insert(slots.end(), numbers.begin(), numbers.end());
    slots.insert(slots.end(), sizes.begin(), sizes.end());
    auto launch = [&](const runtime::cpu::Code& c) {
      runtime::cpu::launch(c.function(graph.name), slots.data(), evaluate(layout.count, value), grain,
                           static_cast<size_t>(evaluate(layout.scratch_bytes, value)));
    };
    if (!baseline) return launch(*code);
    // Both codes on the same buffers.
    using Contents = std::vector<std::vector<std::byte>>;
    auto contents = [&] {
      Contents out;
      for (size_t i = 0; i < buffers.size(); ++i) {
        const ir::Type& t = type_of(graph.inputs()[i].value);
        auto* data = static_cast<const std::byte*>(buffers[i]);
        out.emplace_back(data, data + (data ? evaluate(t.shape[0], value) * size_of(t.dtype) : 0));
      }
      return out;
    };
    Contents before = contents();
    launch(*baseline);
    Contents quick = contents();
    for (size_t i = 0; i < buffers.size(); ++i)
      if (!before[i].empty()) std::memcpy(buffers[i], before[i].data(), before[i].size());
    launch(*code);
    Contents slow = contents();
    for (size_t i = 0; i < buffers.size(); ++i) {
      DType t = type_of(graph.inputs()[i].value).dtype;
      auto size = static_cast<size_t>(size_of(t));
      for (size_t at = 0; at < quick[i].size(); at += size)
        if (std::memcmp(quick[i].data() + at, slow[i].data() + at, size) != 0 &&
            !(is_nan(quick[i].data() + at, t) && is_nan(slow[i].data() + at, t))) {
          ADD_FAILURE() << "element " << at / size << " of buffer " << i << " is "
                        << ::testing::PrintToString(quick[i][at]) << "… with baseline code, "
                        << ::testing::PrintToString(slow[i][at]) << "… optimized:\n"
                        << ir::print(graph);
          break;
        }
    }
  }

  // NaNs may differ in their digits: which operand's go on is the processor's choice.
  static bool is_nan(const std::byte* data, DType t) {
    auto read = [&](auto x) {
      std::memcpy(&x, data, sizeof x);
      return x;
    };
    if (t == DType::Float32) return std::isnan(read(0.0F));
    if (t == DType::Float64) return std::isnan(read(0.0));
    uint16_t half = is_floating(t) && size_of(t) == 2 ? read(uint16_t{0}) & 0x7fff : 0;
    return half > (t == DType::Float16 ? 0x7c00 : 0x7f80);
  }

  std::vector<runtime::Slot> numbers;  // of the next run
  ir::Graph graph;
  LoopBuilder b;
  KernelLayout layout;
  std::shared_ptr<const runtime::cpu::Code> code, baseline;
};

template <class T = float>
std::vector<T> ramp(size_t n, double scale = 1, double start = 0) {
  std::vector<T> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<T>(start + scale * static_cast<double>((i * 37) % 101));
  return out;
}

}  // namespace brasa::compiler::test
