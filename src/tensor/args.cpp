#include "tensor/args.h"

#include <algorithm>
#include <bit>

#include "support/error.h"

namespace brasa::eager {
namespace {

// In the order of MemoryFormat.
constexpr const char* kMemoryFormats[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};

}  // namespace

using Kind = CallArg::Kind;

ArgStore::ArgStore(std::span<const CallArg> args) : args_(args.begin(), args.end()) {
  // Sizes first, so that the pointers into the copies stay.
  size_t tensors = 0, optionals = 0, scalars = 0, ints = 0, doubles = 0, bools = 0, chars = 0, generators = 0;
  for (const CallArg& a : args) switch (a.kind) {
      case Kind::Tensor: tensors += 1; break;
      case Kind::Tensors: tensors += a.size; break;
      case Kind::OptionalTensors: optionals += a.size; break;
      case Kind::Scalar: scalars += 1; break;
      case Kind::Scalars: scalars += a.size; break;
      case Kind::Ints: ints += a.size; break;
      case Kind::Doubles: doubles += a.size; break;
      case Kind::Bools: bools += a.size; break;
      case Kind::String: chars += a.size; break;
      case Kind::Generator: generators += 1; break;
      default: break;
    }
  tensors_.reserve(tensors);
  optional_tensors_.reserve(optionals);
  scalars_.reserve(scalars);
  ints_.reserve(ints);
  doubles_.reserve(doubles);
  bools_ = std::make_unique<bool[]>(bools);
  chars_.reserve(chars);
  generators_.reserve(generators);
  bool* next_bool = bools_.get();
  auto keep = [](auto& store, auto* from, size_t n) {
    auto* at = store.data() + store.size();
    store.insert(store.end(), from, from + n);
    return at;
  };
  for (CallArg& a : args_) switch (a.kind) {
      case Kind::Tensor: a.tensor = keep(tensors_, a.tensor, 1); break;
      case Kind::Tensors: a.tensor = keep(tensors_, a.tensor, a.size); break;
      case Kind::OptionalTensors: a.optional_tensor = keep(optional_tensors_, a.optional_tensor, a.size); break;
      case Kind::Scalar: a.scalar = keep(scalars_, a.scalar, 1); break;
      case Kind::Scalars: a.scalar = keep(scalars_, a.scalar, a.size); break;
      case Kind::Ints: a.ints = keep(ints_, a.ints, a.size); break;
      case Kind::Doubles: a.doubles = keep(doubles_, a.doubles, a.size); break;
      case Kind::Bools:
        std::copy(a.bools, a.bools + a.size, next_bool);
        a.bools = next_bool;
        next_bool += a.size;
        break;
      case Kind::String: a.chars = keep(chars_, a.chars, a.size); break;
      case Kind::Generator: a.generator = keep(generators_, a.generator, 1); break;
      default: break;
    }
}

CallArg Literals::default_of(const ir::Param& param) {
  return param.default_value ? of(*param.default_value, param) : CallArg();
}

void Literals::fill_up(std::vector<CallArg>& args, const std::vector<ir::Param>& params, size_t count) {
  while (args.size() < count) args.push_back(default_of(params[args.size()]));
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
  if (auto* v = a.get_if<std::vector<ir::Expr>>()) {
    auto& ints = ints_.emplace_front();
    for (ir::Expr e : *v) ints.push_back(e.constant());
    return ints;
  }
  return {};
}

ir::Arg literal(const Scalar& s) {
  if (s.isBoolean()) return ir::Arg(s.toBool());
  if (s.isFloatingPoint()) return ir::Arg(s.toDouble());
  if (s.isComplex()) return ir::Arg(s.toComplexDouble());
  return ir::Arg(s.toLong());
}

namespace {

std::optional<Scalar> number_of(const CallArg& a) {
  switch (a.kind) {
    case Kind::Scalar: return *a.scalar;
    case Kind::Int: return Scalar(a.integer);
    case Kind::Double: return Scalar(a.real);
    case Kind::Bool: return Scalar(a.integer != 0);
    default: return std::nullopt;
  }
}

}  // namespace

ir::Arg literal(const CallArg& a, const ir::Param& p, const ops::Row& row) {
  using ir::ParamType;
  auto bad = [&]() -> ir::Arg { fail(str(row.name(), ": argument '", p.name, "' is of a wrong kind")); };
  if (a.kind == Kind::None) return ir::Arg();
  auto number = number_of(a);
  if (p.list) {
    size_t repeat = p.list_size ? static_cast<size_t>(p.list_size) : 1;
    switch (p.type) {
      case ParamType::Int: {
        std::vector<ir::Expr> out;
        if (number) {
          out.assign(repeat, ir::Expr(number->toLong()));
        } else if (a.kind == Kind::Ints) {
          for (uint32_t i = 0; i < a.size; ++i) out.emplace_back(a.ints[i]);
          if (out.size() == 1 && repeat > 1) out.assign(repeat, out[0]);
        } else {
          return bad();
        }
        return ir::Arg(std::move(out));
      }
      case ParamType::Float: {
        std::vector<double> out;
        if (number)
          out.assign(repeat, number->toDouble());
        else if (a.kind == Kind::Doubles)
          out.assign(a.doubles, a.doubles + a.size);
        else if (a.kind == Kind::Ints)
          out.assign(a.ints, a.ints + a.size);
        else
          return bad();
        return ir::Arg(std::move(out));
      }
      case ParamType::Bool: {
        if (a.kind != Kind::Bools) return bad();
        return ir::Arg(std::vector<bool>(a.bools, a.bools + a.size));
      }
      case ParamType::Scalar: {
        std::vector<double> out;
        if (a.kind == Kind::Scalars)
          for (uint32_t i = 0; i < a.size; ++i) out.push_back(a.scalar[i].toDouble());
        else if (a.kind == Kind::Doubles)
          out.assign(a.doubles, a.doubles + a.size);
        else if (a.kind == Kind::Ints)
          out.assign(a.ints, a.ints + a.size);
        else
          return bad();
        return ir::Arg(std::move(out));
      }
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
  }
  return bad();
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
  auto is_bool = [&](bool v) {
    auto* b = known.get_if<bool>();
    return b && *b == v;
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
      auto number = number_of(a);
      if (!number || number->isComplex()) return false;
      if (number->isBoolean()) return is_bool(number->toBool());
      return number->isFloatingPoint() ? is_double(number->toDouble()) : is_int(number->toLong());
    }
    case ParamType::Int: return a.kind == Kind::Int && is_int(a.integer);
    case ParamType::Float: return a.kind == Kind::Double && is_double(a.real);
    case ParamType::Bool: return a.kind == Kind::Bool && is_bool(a.integer != 0);
    case ParamType::DType: {
      auto* d = known.get_if<DType>();
      return a.kind == Kind::DType && d && *d == static_cast<DType>(a.integer);
    }
    case ParamType::Str: {
      auto* text = known.get_if<std::string>();
      return a.kind == Kind::String && text && *text == std::string_view(a.chars, a.size);
    }
    default: return false;
  }
}

}  // namespace brasa::eager
