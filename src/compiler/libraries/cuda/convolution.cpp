#include <array>

#include "compiler/compile.h"
#include "compiler/fusion/fuse.h"
#include "compiler/fusion/indexing.h"
#include "compiler/libraries/alone.h"
#include "compiler/libraries/cuda/measured_call.h"
#include "compiler/libraries/rows.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/run/size_program.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/few_channels.h"
#include "runtime/float32_products.h"
#include "support/error.h"

// Convolutions and their derivatives by cuDNN, of images whose channels are neighbours in memory.
namespace brasa::compiler {
namespace {

using ir::Expr;
using ir::Node;
using ir::Shape;
using ir::Value;
using runtime::cuda::Computed;

constexpr size_t kSteps = 4;  // stride, padding, dilation, groups: the last arguments of all three
const Shape& steps(const Node& n, size_t which) { return n.arg<Shape>(n.args.size() - kSteps + which); }

bool takes(const Node& n) {
  const ir::Type &a = type_of(n.arg<Value>(0)), &b = type_of(n.arg<Value>(1));
  return a.dtype == b.dtype && runtime::cuda::takes_convolution(a.dtype, steps(n, 0).size());
}

std::vector<SizeProgram> programs(const Shape& sizes) { return {sizes.begin(), sizes.end()}; }
std::vector<int64_t> sizes(const std::vector<SizeProgram>& programs, const int64_t* symbols) {
  std::vector<int64_t> out;
  for (const SizeProgram& p : programs) out.push_back(p(symbols));
  return out;
}

class ConvolutionCall final : public MeasuredCall {
 public:
  ConvolutionCall(const Group& g, Computed computed, std::shared_ptr<MeasuredWays> ways)
      : MeasuredCall(std::move(ways)), computed_(computed) {
    const Node& n = *g.graph->outputs()[0].value.node;
    dtype_ = n.types[0].dtype;
    // Of a convolution and its operands, and of its derivatives and theirs: which of the three tensors each is.
    auto operand = [&](size_t i) {
      int at = g.graph->input_index(n.arg<Value>(i));
      BRASA_ASSERT(at >= 0, "a convolution's operand is not in memory");
      return Tensor{static_cast<size_t>(at), programs(type_of(n.arg<Value>(i)).shape)};
    };
    Tensor first = operand(0), second = operand(1), result{g.graph->inputs().size(), programs(n.types[0].shape)};
    image_ = computed == Computed::Result ? first : computed == Computed::Image ? result : second;
    weight_ = computed == Computed::Weight ? result : second;
    result_ = computed == Computed::Result ? result : first;
    stride_ = programs(steps(n, 0));
    padding_ = programs(steps(n, 1));
    dilation_ = programs(steps(n, 2));
  }

  /// What a program that runs alone is told of it.
  std::unique_ptr<AloneCall> alone() const {
    auto out = std::make_unique<AloneCall>();
    out->function = "convolution";
    out->tensors = {image_.at, weight_.at, result_.at};
    bool exact = dtype_ == DType::Float32 && !runtime::float32_products_in_tf32();
    out->facts = {alone_number(dtype_), static_cast<int64_t>(computed_), exact, static_cast<int64_t>(stride_.size())};
    for (const auto* of : {&image_.sizes, &weight_.sizes, &result_.sizes, &stride_, &padding_, &dilation_})
      out->sizes.insert(out->sizes.end(), of->begin(), of->end());
    out->work = SizeProgram(Expr(kAloneWorkspace));
    return out;
  }
  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    runtime::cuda::Convolution c{computed_,
                                 dtype_,
                                 sizes(image_.sizes, symbols),
                                 sizes(weight_.sizes, symbols),
                                 sizes(result_.sizes, symbols),
                                 tensors[image_.at],
                                 tensors[weight_.at],
                                 tensors[result_.at],
                                 sizes(stride_, symbols),
                                 sizes(padding_, symbols),
                                 sizes(dilation_, symbols)};
    if (few_channels_ && runtime::cuda::takes_few_channels(c, device))
      return runtime::cuda::run_few_channels(c, device, stream);
    runtime::cuda::run_convolution(c, device, stream, measuring("a convolution"));
  }

 protected:
  // Each element of the result meets the weights of its output.
  double products(const int64_t* symbols) const override {
    double out = 1;
    for (const SizeProgram& p : result_.sizes) out *= static_cast<double>(p(symbols));
    for (size_t d = 1; d < weight_.sizes.size(); ++d) out *= static_cast<double>(weight_.sizes[d](symbols));
    return out;
  }

 private:
  struct Tensor {
    size_t at = 0;  // among the group's inputs and outputs
    std::vector<SizeProgram> sizes;
  };
  Computed computed_;
  bool few_channels_ = !PassRunner::switched_off("few_channels");
  DType dtype_;
  Tensor image_, weight_, result_;
  std::vector<SizeProgram> stride_, padding_, dilation_;
};

template <Computed computed>
std::unique_ptr<DeviceCall> prepare(const Group& g, const CompilerOptions& options, ir::Facts&) {
  auto call = std::make_unique<ConvolutionCall>(g, computed, options.measured_ways);
  if (options.portable) return call->alone();
  return call;
}

template <Computed computed>
constexpr Implementation row(std::string_view primitive) {
  return {.library = "cudnn", .name = "cuDNN", .primitive = primitive, .supports = takes, .prepare = prepare<computed>};
}

}  // namespace

const Implementation kConvolution = row<Computed::Result>("prim::channels_last_convolution"),
                     kConvolutionByInput = row<Computed::Image>("prim::channels_last_convolution_by_input"),
                     kConvolutionByWeight = row<Computed::Weight>("prim::channels_last_convolution_by_weight");

}  // namespace brasa::compiler
