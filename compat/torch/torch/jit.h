#pragma once

#include <string>
#include <vector>

#include <torch/torch.h>

// TorchScript's names, so that programs which mention it compile. Brasa has no TorchScript: what would need one says so.
namespace torch::jit {

using IValue = ::brasa::IValue;

namespace script {

class Module {
 public:
  IValue forward(std::vector<IValue>) { absent("forward()"); }
  IValue operator()(std::vector<IValue>) { absent("a call"); }
  void train(bool = true) { absent("train()"); }
  void eval() { absent("eval()"); }
  void to(::brasa::Device, bool = false) { absent("to()"); }
  void to(::brasa::DType, bool = false) { absent("to()"); }
  void save(const std::string&) const { absent("save()"); }

 private:
  [[noreturn]] static void absent(const char* what) {
    throw ::brasa::Error(std::string("torch::jit::Module: ") + what +
                         " of a module that holds no program: " + "Brasa does not run TorchScript");
  }
};

}  // namespace script
using script::Module;

/// Always brasa::Error.
inline Module load(const std::string& filename, std::optional<::brasa::Device> = std::nullopt) {
  throw ::brasa::Error("torch::jit::load(\"" + filename +
                       "\"): Brasa does not run TorchScript. Build the module of torch::nn " +
                       "classes and use torch::load on it, which takes the file's tensors; or write the model with " +
                       "Python's torch.export, and load it with brasa::io::load_pt2");
}

}  // namespace torch::jit
