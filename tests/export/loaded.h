#pragma once

#include <brasa/brasa.h>
#include <brasa/export_program.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

// The names are those of any program; what differs is in the library.
#include "export/alone/program.h"

namespace brasa {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "brasa-export-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

// A shared library named `alone`, so that its functions have the names of program.h.
class Loaded {
 public:
  Loaded(const ExportedProgram& program, const fs::path& folder, const char* weights = nullptr) {
    program.write_shared((folder / "p").string());
    library_ = dlopen((folder / "p.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) throw std::runtime_error(dlerror());
    check(at<decltype(alone_open)>("alone_open")(&context, weights));
    state.resize(at<decltype(alone_state_bytes)>("alone_state_bytes")());
    context.state = state.data();
    reset();
  }
  ~Loaded() {
    at<decltype(alone_close)>("alone_close")(&context);
    dlclose(library_);
  }

  void reset() { check(at<decltype(alone_reset)>("alone_reset")(&context)); }
  alone_status save(const fs::path& file) { return at<decltype(alone_save)>("alone_save")(&context, file.c_str()); }
  alone_status load(const fs::path& file) { return at<decltype(alone_load)>("alone_load")(&context, file.c_str()); }
  alone_status run(const std::vector<Tensor>& in, std::vector<Tensor>& out) {
    std::vector<alone_tensor> inputs = tensors(in), outputs = tensors(out);
    return run_raw(inputs, outputs);
  }
  alone_status run_raw(const std::vector<alone_tensor>& inputs, std::vector<alone_tensor>& outputs) {
    size_t bytes = 0;
    if (auto status = at<decltype(alone_memory)>("alone_memory")(&context, inputs.data(), &bytes)) return status;
    memory.assign(bytes, '\xff');
    context.memory = memory.data();
    context.memory_bytes = bytes;
    return at<decltype(alone_run)>("alone_run")(&context, inputs.data(), outputs.data());
  }
  /// What a run gives, with the sizes that it has; std::runtime_error with the message.
  std::vector<Tensor> give(const std::vector<Tensor>& in) {
    std::vector<alone_tensor> inputs = tensors(in),
                              greatest(static_cast<size_t>(at<decltype(alone_outputs)>("alone_outputs")()));
    check(at<decltype(alone_sizes)>("alone_sizes")(&context, inputs.data(), greatest.data()));
    std::vector<Tensor> out;
    for (size_t o = 0; o < greatest.size(); ++o)
      out.push_back(empty({static_cast<int64_t>(greatest[o].bytes)}, kUInt8));
    std::vector<alone_tensor> given = tensors(out);
    check(run_raw(inputs, given));
    for (size_t o = 0; o < out.size(); ++o) {
      auto index = static_cast<int32_t>(o);
      int rank = at<decltype(alone_output_rank)>("alone_output_rank")(index);
      DType dtype = dtype_named(at<decltype(alone_output_dtype)>("alone_output_dtype")(index));
      std::vector<int64_t> sizes(given[o].sizes, given[o].sizes + rank);
      int64_t bytes = size_of(dtype);
      for (int d = 0; d < rank; ++d) {
        bytes *= sizes[static_cast<size_t>(d)];
        if (sizes[static_cast<size_t>(d)] > greatest[o].sizes[d])
          throw std::runtime_error("a size is beyond the greatest");
      }
      out[o] = out[o].slice(0, 0, bytes).clone().view(dtype).reshape(sizes);
    }
    return out;
  }
  /// The message of a run that is refused; empty where it gives results.
  std::string refusal(const std::vector<Tensor>& in) {
    try {
      give(in);
    } catch (const std::runtime_error& e) {
      return e.what();
    }
    return "";
  }
  template <class F>
  F* at(const char* name) {
    void* found = dlsym(library_, name);
    if (!found) throw std::runtime_error(name);
    return reinterpret_cast<F*>(found);
  }

  alone_context context{};
  std::vector<char> state, memory;

  static std::vector<alone_tensor> tensors(const std::vector<Tensor>& list) {
    std::vector<alone_tensor> out;
    for (const Tensor& t : list) {
      alone_tensor a{t.data_ptr(), static_cast<size_t>(t.numel() * t.element_size()), {}};
      for (int64_t d = 0; d < t.dim(); ++d) a.sizes[d] = t.size(d);
      out.push_back(a);
    }
    return out;
  }

 private:
  static DType dtype_named(const std::string& name) {
    for (auto [stored, dtype] :
         {std::pair("BOOL", kBool), {"I32", kInt32}, {"I64", kInt64}, {"F32", kFloat32}, {"F64", kFloat64}})
      if (name == stored) return dtype;
    throw std::runtime_error(name);
  }
  void check(alone_status status) {
    if (status) throw std::runtime_error(context.message);
  }
  void* library_ = nullptr;
};

inline void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].sizes(), want[i].sizes()) << i;
    // Sums of some ten numbers about 1 in another order.
    EXPECT_TRUE(got[i].is_floating_point() ? allclose(got[i], want[i], 1e-5, 1e-5) : got[i].equal(want[i])) << i;
  }
}

inline ExportOptions alone(std::vector<DynamicSize> dynamic = {}) {
  ExportOptions o;
  o.name = "alone";
  o.dynamic = std::move(dynamic);
  return o;
}

}  // namespace brasa
