#include "sample_call.h"

#include <brasa/elements.h>
#include <brasa/factories.h>

#include <utility>

namespace brasa::pack {

using ops::TensorSample;

SampleCall::SampleCall(const ops::Row& row, const std::vector<ops::SampleArg>& args, const MakeTensor& make) {
  for (size_t i = 0; i < args.size(); ++i) {
    const ir::Param& param = row.schema.params[i];
    if (auto* literal = std::get_if<ir::Arg>(&args[i])) {
      add_literal(*literal, param);
    } else if (auto* one = std::get_if<TensorSample>(&args[i])) {
      args_.emplace_back(tensors_.emplace_front(1, make(*one))[0]);
    } else {
      std::vector<Tensor> list;
      for (const TensorSample& s : std::get<std::vector<TensorSample>>(args[i])) list.push_back(make(s));
      add_list(std::move(list), param);
    }
  }
}

void SampleCall::add_literal(const ir::Arg& literal, const ir::Param& param) {
  args_.push_back(literals_.of(literal, param));
  // A text that the parameter cannot take: the operator rejects it.
  auto* text = literal.get_if<std::string>();
  if (text && args_.back().kind == CallArg::Kind::None) args_.back() = CallArg(std::string_view(*text));
}

void SampleCall::add_list(std::vector<Tensor> tensors, const ir::Param& param) {
  std::vector<Tensor>& kept = tensors_.emplace_front(std::move(tensors));
  if (param.optional_items)
    args_.emplace_back(ArrayRef<std::optional<Tensor>>(optionals_.emplace_front(kept.begin(), kept.end())));
  else
    args_.emplace_back(TensorList(kept));
}

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

eager::Results run(const ops::Row& row, const ops::Sample& sample, bool gradients) {
  SampleCall call(row, sample.args, [&](const TensorSample& s) {
    Tensor t = tensor_of(s);
    if (gradients && t.is_floating_point()) t.set_requires_grad(true);
    return t;
  });
  eager::Results results;
  eager::call(eager::op(row), call.args(), results);
  return results;
}

}  // namespace brasa::pack
