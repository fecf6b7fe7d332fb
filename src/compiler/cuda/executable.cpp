#include "compiler/cuda/executable.h"

#include <chrono>

#include "compiler/cuda/check.h"
#include "compiler/cuda/mirror.h"
#include "support/error.h"

namespace brasa::compiler {

namespace cuda = runtime::cuda;

namespace {

struct DeviceMemory {
  cuda::Device& device;
  size_t bytes;
  char* data;
  DeviceMemory(cuda::Device& d, size_t n) : device(d), bytes(n), data(static_cast<char*>(d.allocate(n))) {}
  ~DeviceMemory() { device.deallocate(data, bytes); }
  DeviceMemory(const DeviceMemory&) = delete;
};

}  // namespace

CompiledCuda::CompiledCuda(const ir::Graph& graph, std::vector<Place> buffers, std::vector<Step> steps,
                           std::vector<Check> checks, ir::Expr arena_bytes, Report report, cuda::Device& device,
                           std::unique_ptr<CudaCheck> check)
    : Compiled(graph, std::move(buffers), std::move(steps), {}, std::move(checks), arena_bytes, std::move(report)),
      device_(device),
      written_(graph.inputs().size()),
      check_(std::move(check)) {
  for (const ir::Output& o : graph.outputs())
    if (o.into >= 0) written_[o.into] = true;
}

CompiledCuda::~CompiledCuda() = default;

void CompiledCuda::execute(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs,
                           std::vector<double>* seconds) const {
  Mirror mirror(device_);
  for (size_t i = 0; i < inputs.size(); ++i) mirror.add(inputs[i], written_[i], false);
  for (const Operand& o : outputs) mirror.add(o, true, true);
  mirror.upload();
  DeviceMemory arena(device_, static_cast<size_t>(arena_bytes_(symbols)));
  std::vector<void*> buffers;
  for (const Buffer& b : buffers_)
    buffers.push_back(b.kind == Place::Input    ? mirror.on_device(b.index)
                      : b.kind == Place::Output ? mirror.on_device(inputs.size() + b.index)
                                                : arena.data + b.offset(symbols));
  auto test = [&](size_t after) {
    for (const Check& c : checks_) {
      if (c.after != after) continue;
      bool holds = false;
      device_.copy_to_host(&holds, buffers[c.buffer], sizeof holds);
      if (!holds) fail_check(c.message, symbols);
    }
  };
  std::unique_ptr<CudaCheck::Run> checked;
  if (check_) checked = check_->start(device_, mirror, arena.data, arena.bytes, buffers);
  test(static_cast<size_t>(-1));
  for (size_t s = 0; s < steps_.size(); ++s) {
    auto start = std::chrono::steady_clock::now();
    launch(steps_[s], buffers.data(), symbols);
    if (checked) checked->step(s, steps_[s], symbols, report().kernels[steps_[s].group]);
    if (seconds) {
      device_.synchronize();
      (*seconds)[s] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    test(s);
  }
  mirror.download();
  device_.synchronize();
}

void CompiledCuda::launch(const Step& s, void* const* buffers, const int64_t* symbols) const {
  if (s.library) return library_on_host(s, buffers, symbols);
  std::vector<void*> pointers;
  for (int b : s.buffers) pointers.push_back(buffers[b]);
  std::vector<int64_t> sizes;
  for (uint32_t id : s.sizes) sizes.push_back(symbols[id]);
  cuda::launch(device_, s.kernel.gpu_function, pointers, sizes, s.count(symbols), s.threads);
}

void CompiledCuda::library_on_host(const Step& s, void* const* buffers, const int64_t* symbols) const {
  size_t count = s.buffers.size();
  std::vector<std::vector<std::byte>> host(count);
  std::vector<void*> pointers(count);
  for (size_t i = 0; i < count; ++i) {
    host[i].resize(s.library->bytes_of(i, symbols));
    pointers[i] = host[i].data();
    if (i < s.first_written) device_.copy_to_host(pointers[i], buffers[s.buffers[i]], host[i].size());
  }
  s.library->run(pointers.data(), symbols);
  for (size_t i = s.first_written; i < count; ++i)
    device_.copy_to_device(buffers[s.buffers[i]], pointers[i], host[i].size());
}

}  // namespace brasa::compiler
