#include "samples.h"

#include <cmath>

#include "ops/primitives/interp.h"
#include "support/error.h"
#include "transforms/derived.h"

namespace brasa::test {
namespace {

// Multiples of the golden ratio: spread evenly, never equal, far from round numbers.
class Numbers {
 public:
  double next(double low, double high) {
    at_ = std::fmod(at_ + 0.6180339887498949, 1.0);
    return low + (high - low) * at_;
  }

 private:
  double at_ = 0.137;
};

CallTensor tensor(const ops::TensorSample& s, bool wide, Numbers& numbers) {
  CallTensor t;
  t.array = ops::make_array(wide && is_floating(s.dtype) ? DType::Float64 : s.dtype, s.shape);
  for (int64_t i = 0; i < t.array.numel(); ++i) {
    double v = numbers.next(s.low, s.high);
    is_integral(s.dtype, true) ? ops::set_int(t.array, i, static_cast<int64_t>(std::floor(v)))
                               : ops::set(t.array, i, v);
  }
  return t;
}

}  // namespace

ops::Array sample_array(const ops::TensorSample& sample) {
  Numbers numbers;
  return tensor(sample, false, numbers).array;
}

Call plain_call(const ops::Row& row, const ops::Sample& sample, bool wide) {
  Call call;
  call.row = &row;
  Numbers numbers;
  auto add = [&](const ops::TensorSample& s) {
    call.tensors.push_back(tensor(s, wide, numbers));
    call.needs_gradient.push_back(wide && is_floating(s.dtype));
    return static_cast<int>(call.tensors.size()) - 1;
  };
  const auto& params = row.schema.params;
  BRASA_CHECK(sample.args.size() <= params.size(), row.name(), ": the sample has ", sample.args.size(),
              " arguments for ", params.size(), " parameters");
  for (size_t i = 0; i < params.size(); ++i) {
    bool is_tensor = params[i].type == ir::ParamType::Tensor;
    if (i >= sample.args.size()) {
      BRASA_CHECK(params[i].default_value || params[i].optional || params[i].type == ir::ParamType::Generator,
                  row.name(), ": the sample gives no '", params[i].name, "'");
      call.args.push_back(is_tensor && !params[i].list ? CallArg(-1)
                                                       : CallArg(params[i].default_value.value_or(ir::Arg())));
      continue;
    }
    const ops::SampleArg& a = sample.args[i];
    if (auto* literal = std::get_if<ir::Arg>(&a)) {
      call.args.push_back(is_tensor && !params[i].list ? CallArg(-1) : CallArg(*literal));
    } else if (auto* one = std::get_if<ops::TensorSample>(&a)) {
      call.args.emplace_back(std::in_place_type<int>, add(*one));
    } else {
      std::vector<int> list;
      for (const ops::TensorSample& s : std::get<std::vector<ops::TensorSample>>(a)) list.push_back(add(s));
      call.args.push_back(std::move(list));
    }
  }
  return call;
}

Call counted(Call call) {
  const ops::Row& row = *call.row;
  if (!row.count) return call;
  Call counting = call;
  counting.row = &transforms::count_row(row);
  counting.cotangents.clear();
  ops::Array count = run_interpreter(counting, false).outputs.at(0);
  std::vector<ir::Expr> sizes;
  for (int64_t i = 0; i < count.numel(); ++i) sizes.emplace_back(ops::get_int(count, i));
  call.row = &transforms::sized_row(row);
  call.args.emplace_back(std::in_place_type<ir::Arg>, ir::Arg(sizes));
  return call;
}

Call sample_call(const ops::Row& row, const ops::Sample& sample, bool wide) {
  return counted(plain_call(row, sample, wide));
}

Call first_call(const ops::Row& row) { return plain_call(row, row.samples.at(0), false); }

std::string test_name(const std::string& row) {
  std::string out;
  for (char c : row) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out;
}

std::vector<std::string> composed_rows() {
  std::vector<std::string> out;
  for (const ops::Row& r : ops::table().rows())
    if (!r.is_primitive()) out.push_back(r.name());
  return out;
}

}  // namespace brasa::test
