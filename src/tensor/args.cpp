#include "tensor/args.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "ops/primitives/interp.h"
#include "support/error.h"
#include "tensor/tensor_impl.h"

namespace brasa::eager {
namespace {

// In the order of MemoryFormat.
constexpr const char* kMemoryFormats[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};

}  // namespace

using Kind = CallArg::Kind;

void append_shape(std::string& shapes, const Tensor& t) {
  if (t.defined()) shapes += str(shapes.empty() ? "" : ", ", t);
}

bool is_number(const CallArg& a) {
  return a.kind == Kind::Scalar || a.kind == Kind::Int || a.kind == Kind::Double || a.kind == Kind::Bool;
}

Scalar number_of(const CallArg& a) {
  switch (a.kind) {
    case Kind::Scalar: return *a.scalar;
    case Kind::Double: return Scalar(a.real);
    case Kind::Bool: return Scalar(a.integer != 0);
    default: return Scalar(a.integer);
  }
}

ArgStore::ArgStore(ArrayRef<CallArg> args) : args_(args.vec()) {
  // Sizes first, so that the pointers into the copies stay.
  size_t tensors = 0, optionals = 0;
  for (const CallArg& a : args) {
    if (a.kind == Kind::Tensor || a.kind == Kind::Tensors) tensors += a.kind == Kind::Tensor ? 1 : a.size;
    if (a.kind == Kind::OptionalTensors) optionals += a.size;
  }
  tensors_.reserve(tensors);
  optional_tensors_.reserve(optionals);
  auto keep_in = [](auto& store, auto*& items, size_t n) {
    auto* from = std::exchange(items, store.data() + store.size());
    store.insert(store.end(), from, from + n);
  };
  auto keep = [&]<class T>(const T*& items, size_t n) {
    auto copy = std::make_shared<T[]>(n);
    std::copy(items, items + n, copy.get());
    items = copy.get();
    others_.push_back(std::move(copy));
  };
  for (CallArg& a : args_) switch (a.kind) {
      case Kind::Tensor: keep_in(tensors_, a.tensor, 1); break;
      case Kind::Tensors: keep_in(tensors_, a.tensor, a.size); break;
      case Kind::OptionalTensors: keep_in(optional_tensors_, a.optional_tensor, a.size); break;
      case Kind::Scalar: keep(a.scalar, 1); break;
      case Kind::Scalars: keep(a.scalar, a.size); break;
      case Kind::Ints: keep(a.ints, a.named ? 2 * a.size : a.size); break;
      case Kind::Doubles: keep(a.doubles, a.size); break;
      case Kind::Bools: keep(a.bools, a.size); break;
      case Kind::String: keep(a.chars, a.size); break;
      case Kind::Generator: keep(a.generator, 1); break;
      default: break;
    }
}

CallArg Literals::default_of(const ir::Param& param, const ops::Row& row) {
  BRASA_CHECK(param.default_value || param.optional, row.name(), ": no value for '", param.name, "'");
  return param.default_value ? of(*param.default_value, param) : CallArg();
}

void Literals::fill_up(std::vector<CallArg>& args, const ops::Row& row, size_t count) {
  while (args.size() < count) args.push_back(default_of(row.schema.params[args.size()], row));
}

CallArg Literals::of(const ir::Arg& a, const ir::Param& param) {
  if (auto* v = a.get_if<ir::Expr>()) return v->constant();
  if (auto* v = a.get_if<double>()) return *v;
  if (auto* v = a.get_if<bool>()) return *v;
  if (auto* v = a.get_if<DType>()) return *v;
  if (auto* v = a.get_if<std::complex<double>>()) return scalars_.emplace_front(1, Scalar(*v))[0];
  if (auto* v = a.get_if<std::vector<double>>()) {
    if (param.type != ir::ParamType::Scalar) return ArrayRef<double>(*v);
    return ArrayRef<Scalar>(scalars_.emplace_front(v->begin(), v->end()));
  }
  if (auto* v = a.get_if<std::vector<bool>>()) {
    auto& copy = bools_.emplace_front(new bool[v->size()]);
    std::copy(v->begin(), v->end(), copy.get());
    return ArrayRef<bool>(copy.get(), v->size());
  }
  if (auto* v = a.get_if<std::string>(); v && param.type == ir::ParamType::Str) return std::string_view(*v);
  if (auto* v = a.get_if<std::string>(); v && param.type == ir::ParamType::MemoryFormat) {
    const auto* found = std::find(std::begin(kMemoryFormats), std::end(kMemoryFormats), *v);
    if (found == std::end(kMemoryFormats)) return std::string_view(*v);  // which the operator rejects
    return static_cast<MemoryFormat>(found - std::begin(kMemoryFormats));
  }
  if (auto* v = a.get_if<std::vector<ir::Expr>>()) return ints_.emplace_front(ops::constants(*v));
  return {};
}

ir::Arg literal(const Scalar& s) {
  if (s.isBoolean()) return ir::Arg(s.toBool());
  if (s.isFloatingPoint()) return ir::Arg(s.toDouble());
  if (s.isComplex()) return ir::Arg(s.toComplexDouble());
  return ir::Arg(s.toLong());
}

ir::Arg literal(const CallArg& a, const ir::Param& p, const ops::Row& row) {
  using ir::ParamType;
  auto bad = [&]() -> ir::Arg { fail(str(row.name(), ": argument '", p.name, "' is of a wrong kind")); };
  if (a.kind == Kind::None) return ir::Arg();
  std::optional<Scalar> number = is_number(a) ? std::optional(number_of(a)) : std::nullopt;
  if (p.list) {
    size_t repeat = p.list_size ? static_cast<size_t>(p.list_size) : 1;
    switch (p.type) {
      case ParamType::Int: {
        std::vector<ir::Expr> out;
        if (number) {
          out.assign(repeat, ir::Expr(number->toLong()));
        } else if (a.kind == Kind::Ints) {
          out.assign(a.ints, a.ints + a.size);
          if (out.size() == 1 && repeat > 1) out.assign(repeat, out[0]);
        } else if (a.kind == Kind::Bools) {
          out.assign(a.bools, a.bools + a.size);
        } else {
          return bad();
        }
        return ir::Arg(std::move(out));
      }
      case ParamType::Float:
      case ParamType::Scalar: {
        std::vector<double> out;
        if (number && p.type == ParamType::Float)
          out.assign(repeat, number->toDouble());
        else if (a.kind == Kind::Doubles)
          out.assign(a.doubles, a.doubles + a.size);
        else if (a.kind == Kind::Ints)
          out.assign(a.ints, a.ints + a.size);
        else if (a.kind == Kind::Scalars && p.type == ParamType::Scalar)
          std::transform(a.scalar, a.scalar + a.size, std::back_inserter(out), std::mem_fn(&Scalar::toDouble));
        else
          return bad();
        return ir::Arg(std::move(out));
      }
      case ParamType::Bool:
        if (a.kind != Kind::Bools) return bad();
        BRASA_CHECK(!p.list_size || a.size == repeat, row.name(), ": argument '", p.name, "' takes ", repeat,
                    " values, got ", a.size);
        return ir::Arg(std::vector<bool>(a.bools, a.bools + a.size));
      default: return bad();
    }
  }
  switch (p.type) {
    case ParamType::Scalar:
    case ParamType::Tensor: return number ? literal(*number) : bad();
    case ParamType::Int: return number && !number->isFloatingPoint() ? ir::Arg(number->toLong()) : bad();
    case ParamType::Float: return number ? ir::Arg(number->toDouble()) : bad();
    case ParamType::Bool: return number ? ir::Arg(number->toBool()) : bad();
    case ParamType::Str: return a.kind == Kind::String ? ir::Arg(std::string(a.chars, a.size)) : bad();
    case ParamType::DType: return a.kind == Kind::DType ? ir::Arg(static_cast<DType>(a.integer)) : bad();
    case ParamType::Layout: return ir::Arg("strided");
    case ParamType::Device: return ir::Arg("cpu");
    case ParamType::MemoryFormat: return a.kind == Kind::MemoryFormat ? ir::Arg(kMemoryFormats[a.integer]) : bad();
    case ParamType::Generator: return ir::Arg();
    case ParamType::Graph: return bad();
  }
  return bad();
}

ir::Args literals(const ops::Row& row, ArrayRef<CallArg> args) {
  ir::Args out;
  for (const ir::Param& p : row.schema.params) {
    size_t i = out.size();
    bool given = i < args.size(), none = given && args[i].kind == Kind::None;
    BRASA_CHECK(given || p.default_value || p.optional, row.name(), ": no value for '", p.name, "'");
    BRASA_CHECK(!none || p.type != ir::ParamType::Tensor || p.optional || p.list, row.name(), ": argument '", p.name,
                "' is an undefined tensor");
    if (p.type == ir::ParamType::Tensor || p.type == ir::ParamType::Generator || (none && p.optional))
      out.push_back(ir::Arg());
    else
      out.push_back(given && !none ? literal(args[i], p, row) : p.default_value.value_or(ir::Arg()));
  }
  return out;
}

bool surely_equal(const CallArg& a, const ir::Param& p, const ir::Arg& known) {
  using ir::ParamType;
  auto is_int = [&](int64_t v) {
    auto* e = known.get_if<ir::Expr>();
    return e && e->is(v);
  };
  auto is_double = [&](double v) {
    auto* d = known.get_if<double>();
    return d && std::bit_cast<uint64_t>(*d) == std::bit_cast<uint64_t>(v);
  };
  auto is = [&](auto v) {
    auto* k = known.get_if<decltype(v)>();
    return k && *k == v;
  };
  if (a.kind == Kind::None) return known.is_none();
  if (p.list) {
    auto* ints = known.get_if<std::vector<ir::Expr>>();
    return p.type == ParamType::Int && a.kind == Kind::Ints && ints && ints->size() == a.size &&
           std::equal(ints->begin(), ints->end(), a.ints, [](ir::Expr e, int64_t v) { return e.is(v); });
  }
  switch (p.type) {
    case ParamType::Scalar:
    case ParamType::Tensor: {
      if (!is_number(a)) return false;
      Scalar s = number_of(a);
      if (s.isBoolean()) return is(s.toBool());
      return s.isFloatingPoint() ? is_double(s.toDouble()) : !s.isComplex() && is_int(s.toLong());
    }
    case ParamType::Int: return a.kind == Kind::Int && is_int(a.integer);
    case ParamType::Float: return a.kind == Kind::Double && is_double(a.real);
    case ParamType::Bool: return a.kind == Kind::Bool && is(a.integer != 0);
    case ParamType::DType: return a.kind == Kind::DType && is(static_cast<DType>(a.integer));
    case ParamType::Str: {
      auto* text = known.get_if<std::string>();
      return a.kind == Kind::String && text && *text == std::string_view(a.chars, a.size);
    }
    default: return false;
  }
}

}  // namespace brasa::eager
