#pragma once

#include <string>
#include <vector>

#include "compiler/kernels/codegen_client.h"
#include "compiler/loops/layout.h"
#include "ir/text.h"
#include "runtime/device.h"

namespace brasa::compiler::test {

inline runtime::KernelImage image_of(const ir::Graph& graph, const std::string& target) {
  std::string text = ir::print(graph);
  return compile_kernel_texts({&text, 1}, target);
}

/// Runs a kernel on the GPU that there is; what it leaves in buffer `result`.
inline std::vector<float> on_gpu(const ir::Graph& graph, const std::vector<std::vector<float>>& buffers,
                                 const std::vector<int64_t>& sizes, size_t result) {
  using runtime::kDefaultStream;
  runtime::Device& device = runtime::device_of(Device(kCUDA));
  auto module = device.load(image_of(graph, device.properties().code));
  KernelLayout layout = layout_of(graph);
  auto value = [&](const ir::ExprNode& s) { return sizes.at(s.id); };
  std::vector<void*> memory;
  std::vector<runtime::Slot> slots;
  for (const auto& buffer : buffers) {
    memory.push_back(device.allocate(buffer.size() * 4, kDefaultStream));
    device.upload(memory.back(), buffer.data(), buffer.size() * 4, kDefaultStream);
    slots.push_back(reinterpret_cast<runtime::Slot>(memory.back()));
  }
  slots.insert(slots.end(), sizes.begin(), sizes.end());
  runtime::Launch launch{module->kernel(graph.name), slots, layout.addresses, evaluate(layout.count, value),
                         layout.threads};
  launch.calls = layout.calls;
  device.launch(launch, kDefaultStream);
  std::vector<float> out(buffers[result].size());
  device.download(out.data(), memory[result], out.size() * 4, kDefaultStream);
  for (size_t i = 0; i < memory.size(); ++i) device.deallocate(memory[i], buffers[i].size() * 4, kDefaultStream);
  return out;
}

}  // namespace brasa::compiler::test
