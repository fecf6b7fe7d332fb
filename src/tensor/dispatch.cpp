#include "tensor/dispatch.h"

#include <algorithm>
#include <cstring>
#include <forward_list>
#include <shared_mutex>
#include <unordered_map>

#include "support/error.h"
#include "support/hash.h"
#include "tensor/args.h"
#include "tensor/autograd/record.h"
#include "tensor/execute.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"
#include "tensor/views.h"
#include "transforms/derived.h"

namespace brasa::eager {
namespace {

using Kind = CallArg::Kind;

std::string camel_case(std::string_view name) {
  std::string out;
  bool up = true;
  for (char c : name) {
    if (c == '_') {
      up = true;
    } else {
      out += up ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      up = std::isdigit(static_cast<unsigned char>(c)) != 0;
    }
  }
  return out;
}

// PyTorch numbers the nodes of an operator's overloads in order.
std::string node_name(const ops::Row& row) {
  int number = 0;
  for (const ops::Row& other : ops::table().rows()) {
    if (&other == &row) break;
    number += !other.is_primitive() && other.schema.base == row.schema.base;
  }
  return str(camel_case(row.schema.base), "Backward", number);
}

}  // namespace

Operator::Operator(const ops::Row& row)
    : row_(row), backward_name_(node_name(row)), memory_(memory_operator(row.name())) {
  // Derived rows have the base of the one that they come from.
  if (row.name().starts_with("aten::")) cast_policy_ = eager::cast_policy(row.schema.base);
  bool takes_tensors = std::any_of(row.schema.params.begin(), row.schema.params.end(),
                                   [](const ir::Param& p) { return p.type == ir::ParamType::Tensor; });
  for (const ir::Param& p : row.schema.params) {
    Parameter q;
    q.type = p.type;
    q.list = p.list;
    mutates_ = mutates_ || p.mutated;
    if (p.default_value && p.type == ir::ParamType::Scalar && !p.list) {
      const ir::Arg& a = *p.default_value;
      if (auto* e = a.get_if<ir::Expr>()) q.default_number = Scalar(e->constant());
      if (auto* d = a.get_if<double>()) q.default_number = Scalar(*d);
      if (auto* b = a.get_if<bool>()) q.default_number = Scalar(*b);
    }
    q.shape = p.symbolic && p.list && ((p.name == "size" && !takes_tensors) || p.name == "count");
    parameters_.push_back(std::move(q));
  }
}

template <class F>
const RowProgram& Operator::program(const Words& words, F make) {
  auto same = [&](const Known* k) {
    return k && k->words.size() == words.size() && std::equal(words.begin(), words.end(), k->words.begin());
  };
  const Known* known = last_.load(std::memory_order_acquire);
  if (same(known)) [[likely]]
    return *known->program;
  std::lock_guard lock(mutex_);
  auto& entry = programs_[words.vec()];
  if (!entry) {
    std::unique_ptr<RowProgram> made = make();
    entry = std::make_unique<Known>(Known{words.vec(), std::move(made)});
  }
  last_.store(entry.get(), std::memory_order_release);
  return *entry->program;
}

namespace {

struct Operators {
  std::vector<std::unique_ptr<Operator>> by_index;
  std::unordered_map<const ops::Row*, Operator*> by_row;
  std::shared_mutex mutex;
  std::vector<std::unique_ptr<Operator>> derived;

  Operators() {
    for (const ops::Row& row : ops::table().rows()) {
      by_index.push_back(std::make_unique<Operator>(row));
      by_row.emplace(&row, by_index.back().get());
    }
  }
  static Operators& get() {
    static auto* all = new Operators;
    return *all;
  }
};

}  // namespace

Operator& op(size_t index) { return *Operators::get().by_index[index]; }

Operator& op(const ops::Row& row) {
  Operators& all = Operators::get();
  {
    std::shared_lock lock(all.mutex);
    auto it = all.by_row.find(&row);
    if (it != all.by_row.end()) return *it->second;
  }
  std::lock_guard lock(all.mutex);
  auto [it, fresh] = all.by_row.emplace(&row, nullptr);
  if (fresh) {
    all.derived.push_back(std::make_unique<Operator>(row));
    it->second = all.derived.back().get();
  }
  return *it->second;
}

Operator& op(std::string_view name) {
  const ops::Row* row = transforms::find_row(name);
  BRASA_CHECK(row, "there is no operator '", name, "'");
  return op(*row);
}

Operator& Operator::backward(const std::vector<bool>& needs, const std::vector<bool>& given) {
  std::lock_guard lock(mutex_);
  Operator*& known = backwards_[{needs, given}];
  if (!known) known = &op(transforms::vjp_row(row_, needs, given));
  return *known;
}

namespace {

// A call's arguments, split into what selects the program (words) and what it runs on (inputs).
struct Parsed {
  Words words;
  SmallVector<Input, 8> inputs;
  struct Number {
    alignas(16) unsigned char bytes[16];
    int input;
  };
  SmallVector<Number, 4> numbers;
  Tensor key;  // of a random row
  Generator* stream = nullptr;
  std::optional<Generator> given;  // keeps the caller's stream
  int key_input = -1;
};

void add_number(Parsed& p, const Scalar& s) {
  Input in;
  in.dtype = s.type();
  in.weak = true;
  Parsed::Number n{};
  n.input = static_cast<int>(p.inputs.size());
  if (s.isBoolean()) {
    n.bytes[0] = s.toBool();
  } else if (s.isFloatingPoint()) {
    double v = s.toDouble();
    std::memcpy(n.bytes, &v, sizeof v);
  } else if (s.isComplex()) {
    std::complex<double> v = s.toComplexDouble();
    std::memcpy(n.bytes, &v, sizeof v);
  } else {
    int64_t v = s.toLong();
    std::memcpy(n.bytes, &v, sizeof v);
  }
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

Scalar number_of(const CallArg& a) {
  switch (a.kind) {
    case Kind::Scalar: return *a.scalar;
    case Kind::Double: return Scalar(a.real);
    case Kind::Bool: return Scalar(a.integer != 0);
    default: return Scalar(a.integer);
  }
}

constexpr uint64_t kDefaultWord = 0xd00d;

// Sizes that may be those of an input; wrong ones stay literal, for a message that shows them.
bool is_shape(const Operator::Parameter& p, const CallArg& a) {
  return p.shape && a.kind == Kind::Ints && a.size <= Program::kMaxRank &&
         std::all_of(a.ints, a.ints + a.size, [](int64_t n) { return n >= 0; });
}

Input shape_input(const CallArg& a) {
  static constexpr int64_t kStrides[Program::kMaxRank] = {};
  Input in;
  in.sizes = a.ints;
  in.strides = kStrides;
  in.rank = a.size;
  in.dtype = DType::Bool;
  return in;
}

// The inputs' numbers lie in `p.numbers`, whose memory is settled only when all are there.
void settle_numbers(Parsed& p) {
  for (Parsed::Number& n : p.numbers) p.inputs[n.input].data = n.bytes;
}

void parse(const Operator& op, CallArgs args, bool literal_numbers, Parsed& p) {
  const auto& parameters = op.parameters();
  BRASA_CHECK(args.size() <= parameters.size(), op.row().name(), ": takes ", parameters.size(), " arguments, got ",
              args.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Operator::Parameter& param = parameters[i];
    if (param.type == ir::ParamType::Generator && op.row().random) {
      p.words.push_back(static_cast<uint64_t>(Kind::Generator) << 32);
      p.key_input = static_cast<int>(p.inputs.size());
      if (i < args.size() && args[i].kind == Kind::Tensor) {
        p.inputs.push_back(Input::of(*args[i].tensor));  // a key taken before
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
        p.inputs.push_back(Input::of(*a.tensor));
        break;
      case Kind::Tensors:
        p.words.push_back(tag);
        for (uint32_t k = 0; k < a.size; ++k) p.inputs.push_back(Input::of(a.tensor[k]));
        break;
      case Kind::OptionalTensors: {
        p.words.push_back(tag);
        uint64_t present = 0;
        for (uint32_t k = 0; k < a.size; ++k) {
          bool here = a.optional_tensor[k] && a.optional_tensor[k]->defined();
          present = present << 1 | here;
          if (here) p.inputs.push_back(Input::of(*a.optional_tensor[k]));
          if (k % 64 == 63 || k + 1 == a.size) p.words.push_back(std::exchange(present, 0));
        }
        break;
      }
      case Kind::Scalar:
      case Kind::Int:
      case Kind::Double:
      case Kind::Bool:
        if (param.type == ir::ParamType::Scalar || param.type == ir::ParamType::Tensor) {
          Scalar s = number_of(a);
          if (param.default_number && param.default_number->equal(s) && param.default_number->type() == s.type()) {
            p.words.push_back(kDefaultWord);
          } else if (literal_numbers && param.type == ir::ParamType::Scalar) {
            add_literal(p, s);
          } else {
            p.words.push_back(static_cast<uint64_t>(Kind::Scalar) << 32 | static_cast<uint64_t>(s.type()));
            add_number(p, s);
          }
        } else {
          add_literal(p, number_of(a));
        }
        break;
      case Kind::Scalars:
        p.words.push_back(tag);
        for (uint32_t k = 0; k < a.size; ++k) add_literal(p, a.scalar[k]);
        break;
      case Kind::Ints:
        p.words.push_back(tag);
        if (is_shape(param, a)) {
          p.inputs.push_back(shape_input(a));
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
      default: p.words.push_back(tag); p.words.push_back(a.kind == Kind::None ? 0 : static_cast<uint64_t>(a.integer));
    }
  }
  settle_numbers(p);
}

std::unique_ptr<RowProgram> make_program(const Operator& op, CallArgs args, bool literal_numbers) {
  const auto& params = op.row().schema.params;
  std::vector<RowProgram::Slot> slots;
  int inputs = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    const ir::Param& param = params[i];
    RowProgram::Slot slot;
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
      bool number = a.kind == Kind::Scalar || a.kind == Kind::Int || a.kind == Kind::Double || a.kind == Kind::Bool;
      if (is_shape(op.parameters()[i], a)) {
        slot.shape = true;
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
      } else if (number && (param.type == ir::ParamType::Scalar || param.type == ir::ParamType::Tensor) &&
                 !param.list) {
        Scalar s = number_of(a);
        const auto& dflt = op.parameters()[i].default_number;
        if (dflt && dflt->equal(s) && dflt->type() == s.type())
          use_default();
        else if (literal_numbers && param.type == ir::ParamType::Scalar)
          slot.fixed = literal(s);
        else
          slot.first = inputs++;
      } else {
        slot.fixed = literal(a, param, op.row());
      }
    }
    slots.push_back(std::move(slot));
  }
  return std::make_unique<RowProgram>(op.row(), std::move(slots), inputs);
}

// A generator's key for one call is a tensor that backward can keep.
Tensor new_key() {
  static constexpr int64_t kTwo[] = {2};
  return make_tensor(kTwo, DType::Int64);
}

void take_key(Parsed& p) {
  p.key = new_key();
  p.inputs[p.key_input] = Input::of(p.key);
}

void fill(const Tensor& key, Generator::Key k) {
  auto* at = static_cast<int64_t*>(impl_of(key)->storage->data());
  at[0] = k.seed;
  at[1] = k.offset;
}

void fill_key(void* context, int64_t numel) {
  auto* p = static_cast<Parsed*>(context);
  fill(p->key, p->stream->take(static_cast<uint64_t>(numel)));
}

// Whether memory that a call writes is read by it in another order.
bool overlaps(const TensorImpl& target, const Input& in) {
  if (!in.tensor || !in.data) return false;
  const TensorImpl& other = *impl_of(*in.tensor);
  if (other.storage->root() != target.storage->root() || other.numel == 0 || target.numel == 0) return false;
  if (other.offset == target.offset && other.sizes == target.sizes && other.strides == target.strides &&
      other.dtype == target.dtype)
    return false;
  auto begin = [](const TensorImpl& t) { return static_cast<char*>(t.storage->data()) + t.offset * size_of(t.dtype); };
  auto end = [&](const TensorImpl& t) { return begin(t) + extent_of(t.sizes, t.strides) * size_of(t.dtype); };
  return begin(other) < end(target) && begin(target) < end(other);
}

struct Run {
  // Not an aggregate, which would be cleared as a whole first.
  Run(Operator& o, CallArgs a, const Tensor* i) : op(o), args(a), into(i) {}

  Operator& op;
  CallArgs args;
  const Tensor* into;
  Parsed parsed;
  const RowProgram* row = nullptr;
  const Program* program = nullptr;
  autograd::InPlace* in_place = nullptr;
};

void attempt(Run& r, bool literal_numbers, Results& results) {
  Parsed& p = r.parsed;
  parse(r.op, r.args, literal_numbers, p);
  r.row = &r.op.program(p.words, [&] { return make_program(r.op, r.args, literal_numbers); });
  r.program = r.into ? &r.row->in_place() : r.row;
  Prepare prepare;
  if (p.key_input >= 0) {
    take_key(p);
    prepare = {fill_key, &p};
  }
  if (r.in_place) r.in_place->before(*r.program, p.inputs);
  execute(*r.program, p.inputs, r.into, results, prepare);
}

bool has_numbers(const Parsed& p) { return !p.numbers.empty(); }

// Runs, with numbers as inputs if the row allows.
void run(Run& r, Results& results) {
  bool literal = r.op.literal_numbers.load(std::memory_order_relaxed);
  if (literal) return attempt(r, true, results);
  try {
    attempt(r, false, results);
  } catch (const IndexError&) {
    throw;
  } catch (const Error&) {
    if (!has_numbers(r.parsed)) throw;
    r.parsed = Parsed();
    attempt(r, true, results);
    r.op.literal_numbers.store(true, std::memory_order_relaxed);
  }
}

[[noreturn]] void rethrow_named(const Operator& op, CallArgs args, const Error& e) {
  std::string what = e.what();
  const std::string& base = op.row().schema.base;
  if (what.find(base) == what.npos) what = str(op.row().name(), ": ", what);
  what += str(" (called with");
  for (const CallArg& a : args) {
    if (a.kind == Kind::Tensor) what += str(" ", *a.tensor);
    if (a.kind == Kind::Tensors) what += str(" ", std::vector<Tensor>(a.tensor, a.tensor + a.size));
  }
  what += ")";
  if (dynamic_cast<const IndexError*>(&e)) fail_index(std::move(what));
  fail(std::move(what));
}

}  // namespace

Tensor weak_tensor(const Scalar& s) {
  Parsed p;
  add_number(p, s);
  Tensor t = make_tensor({}, s.type());
  std::memcpy(impl_of(t)->storage->data(), p.numbers[0].bytes, static_cast<size_t>(size_of(s.type())));
  impl_of(t)->weak = true;
  return t;
}

namespace {

// A call as a recorder gets it: random rows have their key among the arguments, where their derivative finds it too, and
// numbers that stand for tensors are tensors.
class RecordedCall {
 public:
  RecordedCall(Recorder& recorder, Operator& op, CallArgs args) : recorder_(recorder), op_(op), args_(args) {
    const auto& params = op.parameters();
    for (size_t i = 0; i < args.size() && i < params.size(); ++i) {
      Kind k = args[i].kind;
      bool number = k == Kind::Scalar || k == Kind::Int || k == Kind::Double || k == Kind::Bool;
      if (number && params[i].type == ir::ParamType::Tensor && !params[i].list)
        replace(i, tensors_.emplace_front(weak_tensor(number_of(args[i]))));
    }
    if (!op.row().random) return;
    size_t at = 0;
    while (params[at].type != ir::ParamType::Generator) ++at;
    if (at < args.size() && args[at].kind == Kind::Tensor) return;  // a key taken before
    stream_ = at < args.size() && args[at].kind == Kind::Generator ? *args[at].generator : default_generator();
    key_ = new_key();
    replace(at, key_);
  }
  CallArgs args() const { return args_; }
  void run(std::vector<Tensor>& out) {
    recorder_.call(op_.row(), {args_.data(), args_.size()}, out);
    if (stream_) fill(key_, stream_->take(out.empty() ? 0 : static_cast<uint64_t>(out[0].numel())));
  }

 private:
  void replace(size_t at, const Tensor& t) {
    if (replaced_.empty()) replaced_.assign(args_.begin(), args_.end());
    const auto& params = op_.row().schema.params;
    for (size_t i = replaced_.size(); i <= at; ++i) replaced_.push_back(defaults_.default_of(params[i]));
    replaced_[at] = CallArg(t);
    args_ = replaced_;
  }
  Recorder& recorder_;
  Operator& op_;
  CallArgs args_;
  std::forward_list<Tensor> tensors_;
  Literals defaults_;
  std::optional<Generator> stream_;  // of a random row
  Tensor key_;
  std::vector<CallArg> replaced_;
};

}  // namespace

namespace {

void check_defined(const Operator& op, CallArgs args) {
  const auto& params = op.row().schema.params;
  for (size_t i = 0; i < std::min(args.size(), params.size()); ++i)
    BRASA_CHECK(
        args[i].kind != Kind::None || params[i].type != ir::ParamType::Tensor || params[i].optional || params[i].list,
        op.row().name(), ": argument '", params[i].name, "' is an undefined tensor");
}

}  // namespace

void call_functional(Operator& op, CallArgs args, Results& results) {
  for (const CallArg& a : args)
    if (a.kind == Kind::Tensors)
      for (uint32_t k = 0; k < a.size; ++k)
        BRASA_CHECK(a.tensor[k].defined(), op.row().name(), ": a tensor of the list is undefined");
  if (op.row().view) {
    check_defined(op, args);
    if (call_view(op, args, results)) return;
  }
  try {
    if (Recorder* recorder = Recorder::current()) [[unlikely]] {
      std::vector<Tensor> out;
      RecordedCall recorded(*recorder, op, args);
      recorded.run(out);
      results.resize(out.size());
      for (size_t i = 0; i < out.size(); ++i) results[i] = std::move(out[i]);
      autograd::attach_recorded(op, recorded.args(), *recorder, results);
      return;
    }
    Run r(op, args, nullptr);
    run(r, results);
    if (!op.row().no_gradient) autograd::attach(*r.program, op.backward_name(), r.parsed.inputs, results);
  } catch (const Error& e) {
    rethrow_named(op, args, e);
  }
}

namespace {

// A row that changes operands, as its schema says, gives their new values behind its results.
void write_operands(const ops::Row& row, CallArgs args, Results& results) {
  NoGradGuard guard;
  size_t value = row.schema.returns.size();
  for (size_t i = 0; i < args.size(); ++i)
    if (row.schema.params[i].mutated) args[i].tensor->copy_(results[value++]);
  results.resize(row.schema.returns.size());
}

// A row whose results' size depends on values: that is found first, and becomes one more argument.
void call_sized(Operator& op, CallArgs args, Results& results) {
  int64_t count = 0;
  {
    NoGradGuard guard;
    Results counted;
    call_functional(eager::op(transforms::count_row(op.row())), args, counted);
    if (Recorder* recorder = Recorder::current())
      recorder->materialise(str(op.row().name(), ", whose result's size depends on values,").c_str());
    count = counted[0].item<int64_t>();
  }
  std::vector<CallArg> with_count(args.begin(), args.end());
  Literals defaults;
  const auto& params = op.row().schema.params;
  for (size_t i = args.size(); i < params.size(); ++i) with_count.push_back(defaults.default_of(params[i]));
  with_count.emplace_back(IntArrayRef(count));
  call_functional(eager::op(transforms::sized_row(op.row())), with_count, results);
}

// Operators that only take memory have no program that would look at the kinds of their arguments.
void call_memory(Operator& op, decltype(op.memory()) make, CallArgs args, Results& results) {
  try {
    const auto& params = op.row().schema.params;
    BRASA_CHECK(args.size() <= params.size(), op.row().name(), ": takes ", params.size(), " arguments, got ",
                args.size());
    for (size_t i = 0; i < args.size(); ++i)
      if (params[i].type != ir::ParamType::Tensor && !params[i].list) literal(args[i], params[i], op.row());
    results.resize(1);
    results[0] = make(args);
  } catch (const Error& e) {
    rethrow_named(op, args, e);
  }
}

}  // namespace

void call(Operator& op, CallArgs args, Results& results) {
  if (auto make = op.memory()) [[unlikely]]
    return call_memory(op, make, args, results);
  if (op.cast_policy() != CastPolicy::None && autocasting()) [[unlikely]] {
    CastCall cast(op.cast_policy(), args);
    return call(op, cast.args(), results);
  }
  if (op.row().count) return call_sized(op, args, results);
  call_functional(op, args, results);
  if (op.mutates() && results.size() > op.row().schema.returns.size()) write_operands(op.row(), args, results);
}

Tensor call_one(Operator& op, CallArgs args) {
  Results results;
  call(op, args, results);
  return std::move(results[0]);
}

void call_many(Operator& op, CallArgs args, Tensor* out, size_t n) {
  Results results;
  call(op, args, results);
  BRASA_ASSERT(results.size() == n, op.row().name(), " gave ", results.size(), " results");
  for (size_t i = 0; i < n; ++i) out[i] = std::move(results[i]);
}

std::vector<Tensor> call_list(Operator& op, CallArgs args) {
  Results results;
  call(op, args, results);
  return results.take();
}

Tensor& call_in_place(Operator& op, CallArgs args, const Tensor& self) {
  checked_impl(self);
  auto& out = const_cast<Tensor&>(self);
  TensorImpl* target = impl_of(self);
  try {
    BRASA_CHECK(
        !may_overlap_itself(target->sizes, target->strides),
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
        "clone() the tensor before performing the operation.");
    autograd::check_in_place(self, args);
    if (Recorder* recorder = Recorder::current()) [[unlikely]] {
      std::vector<Tensor> value;
      RecordedCall recorded(*recorder, op, args);
      recorded.run(value);
      autograd::Pending pending = autograd::prepare_recorded(op, recorded.args(), *recorder);
      if (value.at(0).scalar_type() != target->dtype) {
        CallArg convert[] = {value[0], target->dtype};
        Tensor wide = value[0];
        value.clear();
        recorder->call(ops::at("prim::convert"), convert, value);
      }
      recorder->write(self, value[0]);
      target->storage->bump_version();
      autograd::rebase(self, std::move(pending));
      return out;
    }
    Run r(op, args, &self);
    Results results;
    Parsed probe;
    parse(op, args, op.literal_numbers.load(std::memory_order_relaxed), probe);
    bool overlap = false;
    for (size_t i = 1; i < probe.inputs.size(); ++i) overlap = overlap || overlaps(*target, probe.inputs[i]);
    if (overlap) {
      NoAutocast off;
      Tensor fresh = call_one(op, args);
      return self.copy_(fresh), out;
    }
    autograd::InPlace in_place(self, op);
    r.in_place = &in_place;
    run(r, results);
    target->storage->bump_version();
    in_place.after(r.parsed.inputs);
  } catch (const Error& e) {
    rethrow_named(op, args, e);
  }
  return out;
}

Tensor& call_out(Operator& op, CallArgs args, Tensor& out) {
  NoAutocast off;
  Tensor result = call_one(op, args);
  if (!out.defined()) {
    out = result;
    return out;
  }
  if (!(out.sizes() == result.sizes())) out.resize_(result.sizes());
  out.copy_(result);
  return out;
}

Tensor with_options(Tensor t, const TensorOptions& options) {
  BRASA_CHECK(options.device().is_cpu(), "device ", options.device().str(), " is not available");
  if (options.requires_grad()) t.set_requires_grad(true);
  return t;
}

}  // namespace brasa::eager
