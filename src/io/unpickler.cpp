#include "io/unpickler.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "io/big_int.h"
#include "support/error.h"
#include "support/utf8.h"

// The opcodes and what they do: CPython's Lib/pickletools.py.
namespace brasa::io {

using pickle::Value;

void Unpickler::error(const std::string& what) const {
  fail(str(options_.source, ": ", what, " (at byte ", at_, " of the pickle)"));
}

std::span<const std::byte> Unpickler::take(uint64_t count) {
  if (count > bytes_.size() - at_) error(str("the pickle is cut off: ", count, " more bytes expected"));
  at_ += count;
  return bytes_.subspan(at_ - count, count);
}

template <class T>
T Unpickler::number() {
  uint64_t v = 0;
  std::span<const std::byte> b = take(sizeof(T));
  for (size_t i = sizeof(T); i-- > 0;) v = v << 8 | static_cast<uint64_t>(b[i]);
  return static_cast<T>(v);
}

std::string Unpickler::raw(uint64_t count) {
  std::span<const std::byte> b = take(count);
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}
// UTF-8, in which Python writes surrogates as if they were characters.
std::string Unpickler::text(uint64_t count) {
  std::string out = raw(count);
  for (size_t at = 0; at < out.size();) {
    bool surrogate =
        out.size() - at >= 3 && out[at] == '\xed' && (out[at + 1] & 0xe0) == 0xa0 && (out[at + 2] & 0xc0) == 0x80;
    if (surrogate)
      at += 3;
    else if (!next_code_point(out, at))
      error("a text that is not UTF-8");
  }
  return out;
}

std::string Unpickler::line() {
  const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + at_;
  const void* end = at_ == bytes_.size() ? nullptr : std::memchr(begin, '\n', bytes_.size() - at_);
  if (!end) error("the pickle is cut off: the end of a line expected");
  std::string out(begin, static_cast<const char*>(end));
  at_ += out.size() + 1;
  return out;
}

Unpickler::Node* Unpickler::make(Type type) {
  Node& n = nodes_.emplace_back();
  n.type = type;
  return &n;
}
Unpickler::Node* Unpickler::leaf(Value v) {
  if (v.is_none() || v.kind() == Value::Kind::Bool) {
    Node*& shared = constants_[v.is_none() ? 0 : 1 + v.to_bool()];
    if (!shared) (shared = make(Type::Leaf))->leaf = std::move(v);
    return shared;
  }
  Node* n = make(Type::Leaf);
  n->leaf = std::move(v);
  return n;
}
Unpickler::Node* Unpickler::pop() {
  Node* n = top();
  stack_.pop_back();
  return n;
}
Unpickler::Node* Unpickler::top() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) error("an opcode wants a value, but the stack is empty");
  return stack_.back();
}
std::vector<Unpickler::Node*> Unpickler::pop_mark() {
  if (marks_.empty()) error("an opcode wants a mark, but there is none");
  auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
  std::vector<Node*> out(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return out;
}
void Unpickler::remember(uint64_t key) { memo_[key] = top(); }
void Unpickler::recall(uint64_t key) {
  auto it = memo_.find(key);
  if (it == memo_.end()) error(str("the memo has nothing at ", key));
  push(it->second);
}

void Unpickler::append(Node* to, Arguments items) {
  if (to->type != Type::List && to->type != Type::Set) error("items for what is neither a list nor a set");
  to->items.insert(to->items.end(), items.begin(), items.end());
}
void Unpickler::set_items(Node* to, Arguments items) {
  if (!to->is_dict()) error("keys and values for what is no dictionary");
  if (items.size() % 2) error("a dictionary's key without a value");
  to->items.insert(to->items.end(), items.begin(), items.end());
}

// What `__setstate__` would do. Dictionaries may have attributes beside their items (a state_dict's `_metadata`), which say nothing
// about the values.
void Unpickler::build(Node* object, Node* state) {
  if (object->type == Type::OrderedDict && state->type == Type::Dict) return;
  if (object->type != Type::Object || state->type != Type::Dict) error("a state for what takes none");
  object->items.insert(object->items.end(), state->items.begin(), state->items.end());
}

void Unpickler::push_integer(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxBigIntBytes) error(str("an integer of ", bytes.size(), " bytes"));
  if (bytes.size() > 8) return push(Value::big_int(decimal_of(bytes)));
  uint64_t v = !bytes.empty() && static_cast<int8_t>(bytes.back()) < 0 ? ~uint64_t{0} : 0;
  for (size_t i = bytes.size(); i-- > 0;) v = v << 8 | static_cast<uint64_t>(bytes[i]);
  push(static_cast<int64_t>(v));
}

// ("storage", class, key, where it was, elements), in the older form with a view's place behind.
void Unpickler::persistent(Node* id) {
  const auto& a = id->items;
  if (id->type != Type::Tuple || a.size() < 5 || a.size() > 6 || string_of(a[0], "a persistent id's kind") != "storage")
    error("a persistent id that is no storage");
  if (a[1]->type != Type::Global) error("a storage of no class");
  if (a.size() == 6 && !(a[5]->type == Type::Leaf && a[5]->leaf.is_none())) error("a view of a storage");
  const std::string& type = a[1]->leaf.text();
  std::optional<StoredDType> dtype;
  if (!type.ends_with(".UntypedStorage")) {
    dtype = stored_dtype_of_storage(type.substr(type.rfind('.') + 1));
    if (!dtype) error(str("'", type, "' is no storage of a dtype that is known"));
  }
  uint64_t width = dtype ? static_cast<uint64_t>(size_of(dtype->as)) : 1;
  const std::string& key = string_of(a[2], "a storage's key");
  int64_t elements = int_of(a[4], "a storage's size");
  uint64_t bytes = 0;
  if (elements < 0 || __builtin_mul_overflow(static_cast<uint64_t>(elements), width, &bytes))
    error(str("a storage of ", elements, " elements"));
  auto [at, fresh] = storage_index_.emplace(key, storages_.size());
  if (fresh) {
    bool two_parts = dtype && is_complex(dtype->as);
    storages_.push_back({key, bytes, two_parts ? width / 2 : width});
    storage_dtypes_.push_back(dtype);
  }
  if (storages_[at->second].bytes != bytes) error(str("storage '", key, "' has two sizes"));
  Node* n = make(Type::Storage);
  n->index = at->second;
  push(n);
}

void Unpickler::run() {
  while (!result_) step(number<uint8_t>());
}

// Numbers and texts that are written as lines.
bool Unpickler::step_text(uint8_t opcode) {
  auto parsed = [&](std::string_view digits, auto& out) {
    auto r = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return r.ec == std::errc() && r.ptr == digits.data() + digits.size();
  };
  auto index = [&] {
    uint64_t key = 0;
    if (!parsed(line(), key)) error("a place in the memo that is no number");
    return key;
  };
  switch (opcode) {
    case 'I': {
      std::string digits = line();
      int64_t v = 0;
      if (digits == "00" || digits == "01")
        push(digits == "01");
      else if (parsed(digits, v))
        push(v);
      else
        error("an integer that is no number");
      return true;
    }
    case 'L': {
      std::string digits = line();
      if (!digits.empty() && digits.back() == 'L') digits.pop_back();
      int64_t v = 0;
      if (!parsed(digits, v)) error("an integer that is no number of 64 bits");
      push(v);
      return true;
    }
    case 'F': {
      double v = 0;
      if (!parsed(line(), v)) error("a float that is no number");
      push(v);
      return true;
    }
    case 'p': remember(index()); return true;
    case 'g': recall(index()); return true;
    default: return false;
  }
}

void Unpickler::step(uint8_t opcode) {
  auto tuple = [&](size_t n) {
    Node* t = make(Type::Tuple);
    for (size_t i = 0; i < n; ++i) t->items.push_back(pop());
    std::reverse(t->items.begin(), t->items.end());
    push(t);
  };
  auto marked = [&](Type type) {
    std::vector<Node*> items = pop_mark();
    Node* n = make(type);
    if (type == Type::Dict)
      set_items(n, items);
    else
      n->items = std::move(items);
    push(n);
  };
  switch (opcode) {
    case 0x80:  // PROTO
      if (uint8_t protocol = number<uint8_t>(); protocol > 5) error(str("pickle protocol ", protocol));
      return;
    case 0x95: number<uint64_t>(); return;  // FRAME
    case '.': result_ = pop(); return;
    case '(': marks_.push_back(stack_.size()); return;
    case '0':
      if (!marks_.empty() && marks_.back() == stack_.size())
        marks_.pop_back();
      else
        pop();
      return;
    case '1': pop_mark(); return;
    case '2': push(top()); return;

    case 'N': return push(Value());
    case 0x88: return push(true);
    case 0x89: return push(false);
    case 'J': return push(int64_t{number<int32_t>()});
    case 'K': return push(int64_t{number<uint8_t>()});
    case 'M': return push(int64_t{number<uint16_t>()});
    case 0x8a: return push_integer(take(number<uint8_t>()));
    case 0x8b: return push_integer(take(number<uint32_t>()));
    case 'G': {
      uint64_t bits = __builtin_bswap64(number<uint64_t>());
      double v;
      std::memcpy(&v, &bits, sizeof v);
      return push(v);
    }
    case 'X': return push(text(number<uint32_t>()));
    case 0x8c: return push(text(number<uint8_t>()));
    case 0x8d: return push(text(number<uint64_t>()));
    // Python 2's strings are read as texts, as PyTorch does.
    case 'T': return push(text(number<uint32_t>()));
    case 'U': return push(text(number<uint8_t>()));
    case 'B': return push(Value::bytes(raw(number<uint32_t>())));
    case 'C': return push(Value::bytes(raw(number<uint8_t>())));
    case 0x8e:                                                      // BINBYTES8
    case 0x96: return push(Value::bytes(raw(number<uint64_t>())));  // BYTEARRAY8

    case ']': return push(make(Type::List));
    case ')': return push(make(Type::Tuple));
    case '}': return push(make(Type::Dict));
    case 0x8f: return push(make(Type::Set));
    case 'l': return marked(Type::List);
    case 't': return marked(Type::Tuple);
    case 'd': return marked(Type::Dict);
    case 0x91: return marked(Type::Set);  // FROZENSET
    case 0x85: return tuple(1);
    case 0x86: return tuple(2);
    case 0x87: return tuple(3);
    case 'a': {
      Node* item = pop();
      return append(top(), {&item, 1});
    }
    case 'e':
    case 0x90: {  // ADDITEMS
      std::vector<Node*> items = pop_mark();
      return append(top(), items);
    }
    case 's': {
      Node* value = pop();
      Node* key = pop();
      Node* pair[] = {key, value};
      return set_items(top(), pair);
    }
    case 'u': {
      std::vector<Node*> items = pop_mark();
      return set_items(top(), items);
    }

    case 'q': return remember(number<uint8_t>());
    case 'r': return remember(number<uint32_t>());
    case 0x94: return remember(memo_.size());  // MEMOIZE
    case 'h': return recall(number<uint8_t>());
    case 'j': return recall(number<uint32_t>());

    case 'c':
    case 'i': {  // GLOBAL, INST
      std::string module = line(), name = line();
      push_global(module, name);
      if (opcode == 'i') error(str("the opcode INST, which calls '", module, ".", name, "'"));
      return;
    }
    case 0x93: {  // STACK_GLOBAL
      std::string name = string_of(pop(), "a name"), module = string_of(pop(), "a module's name");
      return push_global(module, name);
    }
    case 'R':
    case 0x81: {  // REDUCE, NEWOBJ
      Node* arguments = pop();
      Node* function = pop();
      return push(call(function, arguments));
    }
    case 'b': {
      Node* state = pop();
      return build(top(), state);
    }
    case 'Q': return persistent(pop());
    default:
      if (!step_text(opcode)) error(str("the opcode ", opcode, " is unknown or not for tensors and plain containers"));
  }
}

}  // namespace brasa::io
