#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <brasa/nn/module.h>
#include <brasa/nn/pimpl.h>

/// Programs that `torch.export.save` wrote, as modules: `auto net = io::load_pt2("net.pt2"); Tensor y = net(x)[0];`.
namespace brasa::io {

struct Pt2Options {
  /// Where the module lives, instead of the devices that the archive names.
  std::optional<Device> device;
};

/// A tensor or number that a program takes.
struct ProgramInput {
  std::string name;
  std::optional<DType> dtype;  ///< absent for a number
  struct Size {
    int64_t example = 0;              ///< what it was in the export
    int64_t least = 0, greatest = 0;  ///< equal: it is fixed
    std::string symbol = {};  ///< the size is factor · symbol + offset; empty for fixed ones and other expressions
    int64_t factor = 1, offset = 0;
  };
  std::vector<Size> sizes = {};
};

/// An exported program. Its parameters and buffers have the names that they had in Python; they can be trained, replaced, loaded and
/// saved as those of any module. Whether dropout is on and which statistics a batch norm uses was fixed by the export: `train()` and
/// `eval()` change nothing.
class BRASA_API ExportedModuleImpl : public nn::Module {
 public:
  struct Internals;
  explicit ExportedModuleImpl(std::unique_ptr<Internals> internals);
  ~ExportedModuleImpl() override;

  /// The program's results for its inputs, each in order, lists and dictionaries flattened. Where the program takes or gives a number, a
  /// tensor of one element stands for it; an undefined tensor stands for None. What the program changes (buffers, inputs) is changed. An archive with
  /// forward and backward in one graph gives the loss, and adds the gradients to `grad()` of the parameters and inputs, as
  /// backward() would. brasa::Error for inputs of other dtypes or sizes than the export allows, and with the node and its line
  /// in the Python program where an operator fails.
  std::vector<Tensor> forward(const std::vector<Tensor>& inputs);
  template <class... T>
    requires(std::convertible_to<const T&, Tensor> && ...)
  std::vector<Tensor> forward(const T&... inputs) {
    return forward(std::vector<Tensor>{inputs...});
  }

  using nn::Module::to;
  void to(Device device, DType dtype, bool non_blocking = false) override;
  void to(Device device, bool non_blocking = false) override;

  /// Writes the program with the module's present weights as an archive of PyTorch's, which torch.export.load takes.
  void write_pt2(const std::string& path) const;

  /// What forward takes, as text: "x: float32[s77, 3, 8, 8], s77 from 1 to 64".
  std::vector<std::string> inputs() const;
  /// The same as data.
  std::vector<ProgramInput> input_types() const;
  /// Dtypes of the inputs; empty for numbers.
  std::vector<std::optional<DType>> input_dtypes() const;

 private:
  std::unique_ptr<Internals> internals_;
};
BRASA_MODULE(ExportedModule);

/// Reads an archive of PyTorch 2.6 to 2.15. Nothing in it is executed but operators of Brasa. brasa::Error for a file that is malformed, and for a program
/// with an operator that Brasa has not, with the operator, the node and its line in the Python program.
BRASA_API ExportedModule load_pt2(const std::string& path, const Pt2Options& options = {});

/// What an archive holds, for a person: the writer, inputs, outputs, parameters, how often it calls each operator.
BRASA_API std::string describe_pt2(const std::string& path);

}  // namespace brasa::io
