#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "compiler/passes/passes.h"
#include "ir/facts.h"
#include "ir/graph.h"
#include "ops/algebra.h"

// What the forms of convolutions share.
namespace brasa::compiler {

/// The operands of a convolution.
struct Conv {
  using Exprs = std::vector<ir::Expr>;
  ir::Value x, w;
  Exprs stride, low, high, x_dilation, w_dilation;
  ir::Expr groups;
  explicit Conv(const ir::Args& args)
      : x(args[0].get<ir::Value>()),
        w(args[1].get<ir::Value>()),
        stride(args[2].get<Exprs>()),
        low(args[3].get<Exprs>()),
        high(args[4].get<Exprs>()),
        x_dilation(args[5].get<Exprs>()),
        w_dilation(args[6].get<Exprs>()),
        groups(args[7].get<ir::Expr>()) {}
  size_t spatial() const { return stride.size(); }
};

inline bool all_one(const std::vector<ir::Expr>& v) {
  return std::all_of(v.begin(), v.end(), [](ir::Expr e) { return e.is(1); });
}
inline bool all_constant(const std::vector<ir::Expr>& v) {
  return std::all_of(v.begin(), v.end(), [](ir::Expr e) { return e.is_constant(); });
}
inline ir::Expr product_from(const ir::Shape& s, size_t first) {
  return ir::product(ir::Shape(s.begin() + static_cast<int64_t>(first), s.end()));
}

/// Zeros around and between the spatial elements, which stand along dimensions from `first` on; a negative border cuts off.
ir::Value bordered(ir::Value x, const std::vector<ir::Expr>& low, const std::vector<ir::Expr>& high,
                   const std::vector<ir::Expr>& dilation, int64_t first = 2);

/// Whether it has a form for images whose channels are neighbours in memory; that form, of such an image, and of a result of this shape,
/// [n, channels, places…].
bool takes_channels_last(const Conv& c, const PassContext& context);
ir::Value convolution_channels_last(const Conv& c, const ir::Shape& result, Primitives& out,
                                    const PassContext& context);

/// Whether it pays to copy an image into that order, and the result back; the convolution of such a copy, without gaps in the image.
bool pays_channels_last(const Conv& c, const PassContext& context);
ir::Value convolution_turned(const Conv& c, Primitives& out, const PassContext& context);
/// The order of the dimensions of [n, channels, places…] that has the channels last, and the one that brings them back.
std::vector<int64_t> channels_to_end(size_t rank);
std::vector<int64_t> channels_to_front(size_t rank);

/// What is made of the weights is made once.
bool lasts(ir::Value w, const PassContext& context);

/// Every place of a plane is a column; an offset in the kernel is a sum over channels and the kernel.
ir::Value convolution_by_rows(const Conv& c, Primitives& out, const PassContext& context);

/// Without neighbours: a product for each image.
ir::Value convolution_of_points(const Conv& c, Primitives& out, const PassContext& context);
/// Of few places in the kernel, at even steps from each other; with any stride.
ir::Value convolution_of_neighbours(const Conv& c, Primitives& out, const PassContext& context);

/// Zeros between the elements of an image, where all that decides which places meet is known, and the remainders of a place by the
/// distance of two elements are few.
bool has_known_spread(const Conv& c);
/// Whether the kernel is as long as the distance of two elements, so that each element makes results of its own.
bool is_apart(const Conv& c);
/// Each remainder meets some places of the kernel alone, and none of the zeros.
ir::Value convolution_of_spread(const Conv& c, const ir::Shape& result, Primitives& out, const PassContext& context);
/// The same of an image whose channels stand last; `convolved` convolves one without gaps.
ir::Value convolution_of_spread_last(const Conv& c, const ir::Shape& result, Primitives& out,
                                     const std::function<ir::Value(const Conv&)>& convolved);

/// With steps and a kernel without gaps: each element is multiplied by each place of the kernel, and what they make overlaps.
ir::Value convolution_of_overlaps(const Conv& c, const ir::Shape& result, Primitives& out);

/// Of images that are short along a dimension, beside the kernel: the image's places there as channels, the result's as outputs; each pair of them
/// has its place of the kernel, or a zero. `convolved` convolves such images, of one place along the dimension.
ir::Value convolution_of_short_images(const Conv& c, size_t dim, const ir::Shape& result, Primitives& out,
                                      const std::function<ir::Value(const Conv&, const ir::Shape&)>& convolved);

/// Asks what decides on the form of a convolution: small steps, kernels and groups are known then.
void ask_of_convolution(const ir::Node* n, const PassContext& context);

}  // namespace brasa::compiler
