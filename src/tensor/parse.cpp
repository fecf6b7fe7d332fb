#include "tensor/parse.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/special.h"
#include "support/error.h"
#include "support/hash.h"
#include "tensor/execute.h"

namespace brasa::eager {

using Kind = CallArg::Kind;

namespace {

// What a Device argument names.
runtime::Device& device_at(const CallArg& a) {
  return runtime::device_of(
      Device(static_cast<DeviceType>(a.integer & 0xff), static_cast<int8_t>((a.integer >> 8) - 1)));
}

bool is_symbol(int64_t n) { return n >= -kLargestSymbol && n <= kLargestSymbol; }

}  // namespace

runtime::Device* named_place(ArrayRef<CallArg> args) {
  for (const CallArg& a : args)
    if (a.kind == Kind::Device) return &device_at(a);
  return nullptr;
}

Pass pass_of(const Operator::Parameter& p, const CallArg& a) {
  if (a.kind == Kind::Ints) {
    auto is_special = [&](int64_t n) { return ir::is_special(p.special, static_cast<double>(n)); };
    if (!p.special.empty() && std::all_of(a.ints, a.ints + a.size, is_special)) return Pass::Word;
    bool symbols = p.use == ir::NumberUse::Size && a.size <= Computation::kMaxRank &&
                   std::all_of(a.ints, a.ints + a.size, is_symbol);
    return symbols ? Pass::Size : Pass::Word;
  }
  if (!is_number(a) || p.list) return Pass::Word;
  Scalar s = number_of(a);
  if (p.default_number && p.default_number->type() == s.type() && p.default_number->equal(s)) return Pass::Default;
  if (p.type == ir::ParamType::Tensor) return Pass::Number;
  if (p.use == ir::NumberUse::Known) return Pass::Word;
  if (!s.isComplex() && ir::is_special(p.special, s.toDouble())) return Pass::Word;
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
  Parsed::Number n{{}, static_cast<int>(p.inputs.size())};
  write_number(s, n.bytes);
  p.numbers.push_back(n);
  p.inputs.push_back({.dtype = s.type(), .weak = true});
}

void add_literal(Parsed& p, const Scalar& s) {
  p.words.push_back(static_cast<uint64_t>(Kind::Scalar) << 32 | 1u << 8 | static_cast<uint64_t>(s.type()));
  if (s.isFloatingPoint() || s.isComplex()) {
    std::complex<double> v = s.toComplexDouble();
    p.words.push_back(std::bit_cast<uint64_t>(v.real()));
    if (s.isComplex()) p.words.push_back(std::bit_cast<uint64_t>(v.imag()));
  } else {
    p.words.push_back(static_cast<uint64_t>(s.toLong()));
  }
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
  p.inputs.push_back({.strides = kStrides, .rank = count, .dtype = DType::Bool});
}

bool is_present(const std::optional<Tensor>& t) { return t && t->defined(); }

// The key of a random row: one taken before, or still to be taken.
void add_key(Parsed& p, const CallArg& a) {
  p.words.push_back(static_cast<uint64_t>(Kind::Generator) << 32);
  if (a.kind == Kind::Tensor) {
    p.add(*a.tensor);
    return;
  }
  if (a.kind == Kind::Generator) p.given = *a.generator;
  p.stream = p.given ? &*p.given : &default_generator();
  p.key_input = static_cast<int>(p.inputs.size());
  p.inputs.push_back({});
}

void add_number(Parsed& p, const Operator::Parameter& param, const CallArg& a) {
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
}

}  // namespace

void parse(const Operator& op, ArrayRef<CallArg> args, Parsed& p) {
  const auto& parameters = op.parameters();
  BRASA_CHECK(args.size() <= parameters.size(), op.row().name(), ": takes ", parameters.size(), " arguments, got ",
              args.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Operator::Parameter& param = parameters[i];
    if (param.type == ir::ParamType::Generator && op.row().random) {
      add_key(p, i < args.size() ? args[i] : CallArg());
      continue;
    }
    if (i >= args.size()) {
      p.words.push_back(kDefaultWord);
      continue;
    }
    const CallArg& a = args[i];
    if (is_number(a)) {
      add_number(p, param, a);
      continue;
    }
    p.words.push_back(static_cast<uint64_t>(a.kind) << 32 | a.size);
    switch (a.kind) {
      case Kind::Tensor: p.add(*a.tensor); break;
      case Kind::Tensors:
        for (uint32_t k = 0; k < a.size; ++k) p.add(a.tensor[k]);
        break;
      case Kind::OptionalTensors: {
        uint64_t present = 0;
        for (uint32_t k = 0; k < a.size; ++k) {
          bool here = is_present(a.optional_tensor[k]);
          present = present << 1 | here;
          if (here) p.add(*a.optional_tensor[k]);
          if (k % 64 == 63 || k + 1 == a.size) p.words.push_back(std::exchange(present, 0));
        }
        break;
      }
      case Kind::Scalars:
        for (uint32_t k = 0; k < a.size; ++k) add_literal(p, a.scalar[k]);
        break;
      case Kind::Ints:
        if (pass_of(param, a) == Pass::Size) {
          p.words.back() |= 1u << 31;
          add_sizes(p, a.ints, a.size);
          break;
        }
        for (uint32_t k = 0; k < a.size; ++k) p.words.push_back(static_cast<uint64_t>(a.ints[k]));
        break;
      case Kind::Doubles:
        for (uint32_t k = 0; k < a.size; ++k) p.words.push_back(std::bit_cast<uint64_t>(a.doubles[k]));
        break;
      case Kind::Bools:
        for (uint32_t k = 0; k < a.size; ++k) p.words.push_back(a.bools[k]);
        break;
      case Kind::String: p.words.push_back(hash_bytes(std::string_view(a.chars, a.size))); break;
      case Kind::Device: p.place = &device_at(a); break;  // one computation for all
      case Kind::None: p.words.push_back(0); break;
      default: p.words.push_back(static_cast<uint64_t>(a.integer));
    }
  }
  // The inputs' numbers lie in `p`, whose memory is settled only now.
  for (Parsed::Number& n : p.numbers) p.inputs[n.input].data = n.bytes.at;
  for (Parsed::Sizes& s : p.sizes) p.inputs[s.input].sizes = p.magnitudes.data() + s.first;
}

std::unique_ptr<RowComputation> make_computation(const Operator& op, ArrayRef<CallArg> args) {
  const auto& params = op.row().schema.params;
  std::vector<RowComputation::Slot> slots;
  int inputs = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    const ir::Param& param = params[i];
    RowComputation::Slot slot;
    const CallArg a = i < args.size() ? args[i] : CallArg();
    Pass pass = i < args.size() ? pass_of(op.parameters()[i], a) : Pass::Default;
    bool key = param.type == ir::ParamType::Generator && op.row().random;
    if (key || pass == Pass::Number) {
      slot.first = inputs++;
    } else if (pass == Pass::Default) {
      BRASA_CHECK(param.default_value || param.optional, op.row().name(), ": no value for '", param.name, "'");
      slot.fixed = param.default_value.value_or(ir::Arg());
    } else if (pass == Pass::Size) {
      slot.size = true;
      slot.list = a.kind == Kind::Ints;
      if (slot.list)
        std::transform(a.ints, a.ints + a.size, std::back_inserter(slot.signs), sign_of);
      else
        slot.signs = {sign_of(number_of(a).toLong())};
      slot.first = inputs++;
    } else if (a.kind == Kind::None) {
      BRASA_CHECK(param.type != ir::ParamType::Tensor || param.optional || param.list, op.row().name(), ": argument '",
                  param.name, "' is an undefined tensor");
      if (!param.optional && param.default_value) slot.fixed = *param.default_value;
    } else if (a.kind == Kind::Tensor || a.kind == Kind::Tensors || a.kind == Kind::OptionalTensors) {
      slot.list = param.list || a.kind != Kind::Tensor;
      BRASA_CHECK(slot.list || param.type == ir::ParamType::Tensor || param.use == ir::NumberUse::Input,
                  op.row().name(), ": argument '", param.name, "' is no tensor");
      slot.first = inputs;
      slot.presence.assign(a.kind == Kind::Tensor ? 1 : a.size, true);
      if (a.kind == Kind::OptionalTensors)
        std::transform(a.optional_tensor, a.optional_tensor + a.size, slot.presence.begin(), is_present);
      auto present = std::count(slot.presence.begin(), slot.presence.end(), true);
      BRASA_CHECK(!slot.list || param.optional_items || param.type != ir::ParamType::Tensor ||
                      present == std::ssize(slot.presence),
                  op.row().name(), ": a tensor of the list is undefined");
      inputs += static_cast<int>(present);
    } else {
      slot.fixed = literal(a, param, op.row());
    }
    slots.push_back(std::move(slot));
  }
  return std::make_unique<RowComputation>(op.row(), std::move(slots), inputs);
}

const RowComputation& computation_of(Operator& op, ArrayRef<CallArg> args, Parsed& p) {
  p.described = true;
  parse(op, args, p);
  const RowComputation* computation = op.find(p.words);
  return computation ? *computation : op.add(p.words, make_computation(op, args));
}

Tensor weak_tensor(const Scalar& s) {
  NumberBytes bytes;
  Tensor t = make_tensor({}, s.type());
  std::memcpy(impl_of(t)->storage->data(), write_number(s, bytes), static_cast<size_t>(size_of(s.type())));
  impl_of(t)->weak = true;
  return t;
}

}  // namespace brasa::eager
