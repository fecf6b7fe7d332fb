#include "sample_call.h"

#include <brasa/elements.h>
#include <brasa/factories.h>

namespace brasa::pack {

using ops::TensorSample;

Tensor tensor_of(const TensorSample& s) {
  std::vector<int64_t> shape = s.shape;
  if (!shape.empty()) shape.back() *= s.stride;
  Tensor t = empty(shape, s.dtype);
  int64_t n = t.numel();
  visit_dtype(s.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    auto* at = static_cast<T*>(t.data_ptr());
    for (int64_t i = 0; i < n; ++i) {
      double v = s.low + (s.high - s.low) * (static_cast<double>(i) + 0.5) / static_cast<double>(n);
      if constexpr (std::is_convertible_v<T, double>)
        at[i] = static_cast<T>(v);
      else
        at[i] = T(v);
    }
  });
  return s.stride == 1 || shape.empty() ? t : t.slice(-1, std::nullopt, std::nullopt, s.stride);
}

SampleCall::SampleCall(const ops::Row& row, const ops::Sample& sample, bool gradients) : op_(eager::op(row)) {
  auto make = [&](const TensorSample& s) {
    Tensor t = tensor_of(s);
    if (gradients && t.is_floating_point()) t.set_requires_grad(true);
    return t;
  };
  // The arguments point into these.
  lists_.reserve(sample.args.size());
  optionals_.reserve(sample.args.size());
  tensors_.reserve(sample.args.size());
  scalars_.reserve(sample.args.size());
  for (size_t i = 0; i < sample.args.size(); ++i) {
    const ir::Param& p = row.schema.params[i];
    if (auto* one = std::get_if<TensorSample>(&sample.args[i])) {
      args_.emplace_back(tensors_.emplace_back(make(*one)));
    } else if (auto* list = std::get_if<std::vector<TensorSample>>(&sample.args[i])) {
      std::vector<Tensor>& made = lists_.emplace_back();
      for (const TensorSample& s : *list) made.push_back(make(s));
      if (p.optional_items)
        args_.emplace_back(ArrayRef<std::optional<Tensor>>(optionals_.emplace_back(made.begin(), made.end())));
      else
        args_.emplace_back(TensorList(made));
    } else {
      const auto& literal = std::get<ir::Arg>(sample.args[i]);
      auto* number = literal.get_if<double>();
      auto* integer = literal.get_if<ir::Expr>();
      if (p.type == ir::ParamType::Tensor && !p.list && (number || integer))
        args_.emplace_back(scalars_.emplace_back(number ? Scalar(*number) : Scalar(integer->constant())));
      else if (auto* text = literal.get_if<std::string>())
        args_.emplace_back(std::string_view(*text));
      else
        args_.push_back(literals_.of(literal, p));
    }
  }
  literals_.fill_up(args_, row.schema.params, row.schema.params.size() - (row.random ? 1 : 0));
}

eager::Results SampleCall::run() {
  eager::Results results;
  eager::call(op_, args_, results);
  return results;
}

}  // namespace brasa::pack
