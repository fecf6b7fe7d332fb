#include "tensor/parse.h"

#include <algorithm>
#include <cstring>

#include "support/error.h"
#include "support/hash.h"
#include "tensor/args.h"
#include "tensor/execute.h"

namespace brasa::eager {

using Kind = CallArg::Kind;

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

runtime::Device& device_at(const CallArg& a) {
  return runtime::device_of(
      Device(static_cast<DeviceType>(a.integer & 0xff), static_cast<int8_t>((a.integer >> 8) - 1)));
}

runtime::Device* named_place(ArrayRef<CallArg> args) {
  for (const CallArg& a : args)
    if (a.kind == Kind::Device) return &device_at(a);
  return nullptr;
}

namespace {

constexpr int64_t kLargestSymbol = int64_t{1} << 48;  // sums and products of symbols stay far below 2^63
bool is_symbol(int64_t n) { return n >= -kLargestSymbol && n <= kLargestSymbol; }

}  // namespace

Pass pass_of(const Operator::Parameter& p, const CallArg& a) {
  if (a.kind == Kind::Ints) {
    for (double known : p.special)
      if (std::all_of(a.ints, a.ints + a.size, [&](int64_t n) { return static_cast<double>(n) == known; }))
        return Pass::Word;
    bool symbols = p.use == ir::NumberUse::Size && a.size <= Computation::kMaxRank &&
                   std::all_of(a.ints, a.ints + a.size, is_symbol);
    return symbols ? Pass::Size : Pass::Word;
  }
  if (!is_number(a) || p.list) return Pass::Word;
  Scalar s = number_of(a);
  if (p.default_number && p.default_number->type() == s.type() && p.default_number->equal(s)) return Pass::Default;
  if (p.type == ir::ParamType::Tensor) return Pass::Number;
  if (p.use == ir::NumberUse::Known) return Pass::Word;
  for (double known : p.special)
    if (!s.isComplex() && s.toDouble() == known) return Pass::Word;
  if (p.use == ir::NumberUse::Input) return Pass::Number;
  return s.isIntegral(false) && is_symbol(s.toLong()) ? Pass::Size : Pass::Word;
}

// A floating parameter takes integers too.
Scalar number_for(const Operator::Parameter& p, const CallArg& a) {
  Scalar s = number_of(a);
  return p.type == ir::ParamType::Float && !s.isFloatingPoint() ? Scalar(s.toDouble()) : s;
}

void* write_number(const Scalar& s, NumberBytes& bytes) {
  auto put = [&](auto v) { return std::memcpy(bytes.at, &v, sizeof v); };
  if (s.isBoolean()) return put(s.toBool());
  if (s.isFloatingPoint()) return put(s.toDouble());
  return s.isComplex() ? put(s.toComplexDouble()) : put(s.toLong());
}

namespace {

void add_number(Parsed& p, const Scalar& s) {
  InputTensor in;
  in.dtype = s.type();
  in.weak = true;
  Parsed::Number n{{}, static_cast<int>(p.inputs.size())};
  write_number(s, n.bytes);
  p.numbers.push_back(n);
  p.inputs.push_back(in);
}

void add_literal(Parsed& p, const Scalar& s) {
  p.words.push_back(static_cast<uint64_t>(Kind::Scalar) << 32 | 1u << 8 | static_cast<uint64_t>(s.type()));
  uint64_t bits = 0;
  if (s.isComplex()) {
    std::complex<double> v = s.toComplexDouble();
    double parts[] = {v.real(), v.imag()};
    for (double d : parts) {
      std::memcpy(&bits, &d, sizeof d);
      p.words.push_back(bits);
    }
    return;
  }
  if (s.isFloatingPoint()) {
    double d = s.toDouble();
    std::memcpy(&bits, &d, sizeof d);
  } else {
    bits = static_cast<uint64_t>(s.toLong());
  }
  p.words.push_back(bits);
}

constexpr uint64_t kDefaultWord = 0xd00d;

// 0 for -1.
int sign_of(int64_t n) { return n == -1 ? 0 : n < 0 ? -1 : 1; }

// A word of the signs, and an input whose sizes are the magnitudes.
void add_sizes(Parsed& p, const int64_t* items, uint32_t count) {
  static constexpr int64_t kStrides[Computation::kMaxRank] = {};
  uint64_t signs = 0;
  p.sizes.push_back({static_cast<int>(p.inputs.size()), static_cast<uint32_t>(p.magnitudes.size())});
  for (uint32_t k = 0; k < count; ++k) {
    signs = signs << 2 | static_cast<uint64_t>(sign_of(items[k]) + 1);
    p.magnitudes.push_back(items[k] < 0 ? -items[k] : items[k]);
  }
  p.words.push_back(signs);
  InputTensor in;
  in.strides = kStrides;
  in.rank = count;
  in.dtype = DType::Bool;
  p.inputs.push_back(in);
}

// The inputs' numbers lie in `p`, whose memory is settled only when all are there.
void settle_numbers(Parsed& p) {
  for (Parsed::Number& n : p.numbers) p.inputs[n.input].data = n.bytes.at;
  for (Parsed::Sizes& s : p.sizes) p.inputs[s.input].sizes = p.magnitudes.data() + s.first;
}

}  // namespace

void parse(const Operator& op, ArrayRef<CallArg> args, Parsed& p) {
  const auto& parameters = op.parameters();
  BRASA_CHECK(args.size() <= parameters.size(), op.row().name(), ": takes ", parameters.size(), " arguments, got ",
              args.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Operator::Parameter& param = parameters[i];
    if (param.type == ir::ParamType::Generator && op.row().random) {
      p.words.push_back(static_cast<uint64_t>(Kind::Generator) << 32);
      p.key_input = static_cast<int>(p.inputs.size());
      if (i < args.size() && args[i].kind == Kind::Tensor) {
        p.inputs.push_back(InputTensor::of(*args[i].tensor));  // a key taken before
        p.key_input = -1;
      } else {
        if (i < args.size() && args[i].kind == Kind::Generator) {
          p.given = *args[i].generator;
          p.stream = &*p.given;
        } else {
          p.stream = &default_generator();
        }
        p.inputs.push_back({});
      }
      continue;
    }
    if (i >= args.size()) {
      p.words.push_back(kDefaultWord);
      continue;
    }
    const CallArg& a = args[i];
    uint64_t tag = static_cast<uint64_t>(a.kind) << 32 | a.size;
    switch (a.kind) {
      case Kind::Tensor:
        p.words.push_back(tag);
        p.inputs.push_back(InputTensor::of(*a.tensor));
        break;
      case Kind::Tensors:
        p.words.push_back(tag);
        for (uint32_t k = 0; k < a.size; ++k) p.inputs.push_back(InputTensor::of(a.tensor[k]));
        break;
      case Kind::OptionalTensors: {
        p.words.push_back(tag);
        uint64_t present = 0;
        for (uint32_t k = 0; k < a.size; ++k) {
          bool here = a.optional_tensor[k] && a.optional_tensor[k]->defined();
          present = present << 1 | here;
          if (here) p.inputs.push_back(InputTensor::of(*a.optional_tensor[k]));
          if (k % 64 == 63 || k + 1 == a.size) p.words.push_back(std::exchange(present, 0));
        }
        break;
      }
      case Kind::Scalar:
      case Kind::Int:
      case Kind::Double:
      case Kind::Bool:
        switch (pass_of(param, a)) {
          case Pass::Default: p.words.push_back(kDefaultWord); break;
          case Pass::Word: add_literal(p, number_of(a)); break;
          case Pass::Number: {
            Scalar s = number_for(param, a);
            p.words.push_back(static_cast<uint64_t>(Kind::Scalar) << 32 | static_cast<uint64_t>(s.type()));
            add_number(p, s);
            break;
          }
          case Pass::Size: {
            p.words.push_back(static_cast<uint64_t>(Kind::Int) << 32 | 1u << 8);
            int64_t n = number_of(a).toLong();
            add_sizes(p, &n, 1);
          }
        }
        break;
      case Kind::Scalars:
        p.words.push_back(tag);
        for (uint32_t k = 0; k < a.size; ++k) add_literal(p, a.scalar[k]);
        break;
      case Kind::Ints:
        p.words.push_back(tag);
        if (pass_of(param, a) == Pass::Size) {
          p.words.back() |= 1u << 31;
          add_sizes(p, a.ints, a.size);
          break;
        }
        for (uint32_t k = 0; k < a.size; ++k) p.words.push_back(static_cast<uint64_t>(a.ints[k]));
        break;
      case Kind::Doubles:
        p.words.push_back(tag);
        for (uint32_t k = 0; k < a.size; ++k) {
          uint64_t bits;
          std::memcpy(&bits, &a.doubles[k], sizeof bits);
          p.words.push_back(bits);
        }
        break;
      case Kind::Bools:
        p.words.push_back(tag);
        for (uint32_t k = 0; k < a.size; ++k) p.words.push_back(a.bools[k]);
        break;
      case Kind::String:
        p.words.push_back(tag);
        p.words.push_back(hash_bytes(std::string_view(a.chars, a.size)));
        break;
      case Kind::Device:  // one computation for all
        p.words.push_back(tag);
        p.place = &device_at(a);
        break;
      default: p.words.push_back(tag); p.words.push_back(a.kind == Kind::None ? 0 : static_cast<uint64_t>(a.integer));
    }
  }
  settle_numbers(p);
}

std::unique_ptr<RowComputation> make_computation(const Operator& op, ArrayRef<CallArg> args) {
  const auto& params = op.row().schema.params;
  std::vector<RowComputation::Slot> slots;
  int inputs = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    const ir::Param& param = params[i];
    RowComputation::Slot slot;
    auto use_default = [&] {
      BRASA_CHECK(param.default_value || param.optional, op.row().name(), ": no value for '", param.name, "'");
      if (param.default_value) slot.fixed = *param.default_value;
    };
    if (param.type == ir::ParamType::Generator && op.row().random) {
      slot.first = inputs++;
    } else if (i >= args.size()) {
      use_default();
    } else {
      const CallArg& a = args[i];
      Pass pass = pass_of(op.parameters()[i], a);
      if (pass == Pass::Default) {
        use_default();
      } else if (pass == Pass::Number) {
        slot.first = inputs++;
      } else if (pass == Pass::Size) {
        slot.size = true;
        slot.list = a.kind == Kind::Ints;
        if (slot.list)
          for (uint32_t k = 0; k < a.size; ++k) slot.signs.push_back(sign_of(a.ints[k]));
        else
          slot.signs.push_back(sign_of(number_of(a).toLong()));
        slot.first = inputs++;
      } else if (a.kind == Kind::None) {
        BRASA_CHECK(param.type != ir::ParamType::Tensor || param.optional || param.list, op.row().name(),
                    ": argument '", param.name, "' is an undefined tensor");
        if (!param.optional && param.default_value) slot.fixed = *param.default_value;
      } else if (a.kind == Kind::Tensor && param.list) {
        slot.list = true;
        slot.first = inputs++;
        slot.presence = {true};
      } else if (a.kind == Kind::Tensor) {
        BRASA_CHECK(param.type == ir::ParamType::Tensor || param.type == ir::ParamType::Scalar, op.row().name(),
                    ": argument '", param.name, "' is no tensor");
        slot.first = inputs++;
      } else if (a.kind == Kind::Tensors) {
        slot.list = true;
        slot.first = inputs;
        slot.presence.assign(a.size, true);
        inputs += static_cast<int>(a.size);
      } else if (a.kind == Kind::OptionalTensors) {
        slot.list = true;
        slot.first = inputs;
        for (uint32_t k = 0; k < a.size; ++k) {
          slot.presence.push_back(a.optional_tensor[k] && a.optional_tensor[k]->defined());
          inputs += slot.presence.back();
        }
      } else {
        slot.fixed = literal(a, param, op.row());
      }
    }
    slots.push_back(std::move(slot));
  }
  return std::make_unique<RowComputation>(op.row(), std::move(slots), inputs);
}

Tensor weak_tensor(const Scalar& s) {
  Parsed p;
  add_number(p, s);
  Tensor t = make_tensor({}, s.type());
  std::memcpy(impl_of(t)->storage->data(), p.numbers[0].bytes.at, static_cast<size_t>(size_of(s.type())));
  impl_of(t)->weak = true;
  return t;
}

}  // namespace brasa::eager
