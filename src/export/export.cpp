#include <brasa/export_program.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include <brasa/brasa.h>

#include "export/archive.h"
#include "export/captured.h"
#include "export/compiled.h"
#include "export/embedded.h"
#include "export/files.h"
#include "export/headers.h"
#include "export/object.h"
#include "export/state.h"
#include "export/words.h"
#include "program/conditions.h"
#include "support/error.h"
#include "support/settings.h"

namespace brasa {

using namespace exporting;

struct ExportedProgram::Parts {
  ExportOptions options;
  std::vector<InputType> inputs;
  std::vector<OutputType> outputs;
  std::vector<StateTensor> state;
  Sections sections;
  std::deque<Captured> captured;
  std::vector<NamedTensor> named;
};

namespace {

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// One program has code for processors of one kind.
const Processors& processors_of(const ExportOptions& options) {
  const Processors& first = processors_with(options.targets.at(0));
  for (const std::string& target : options.targets)
    BRASA_CHECK(&processors_with(target) == &first, "export: one program is for processors of one kind; targets '",
                options.targets[0], "' and '", target, "' are not");
  return first;
}

std::string object_of(const ExportedProgram::Parts& p, const std::string& prefix) {
  // Where weights lie beside, the first word says so.
  std::string none(8, '\0');
  bool inside = !p.options.weights_beside && p.sections.weight_bytes > 0;
  const Processors& to = processors_of(p.options);
  return add_sections(p.sections.calls ? to.calling : to.runtime,
                      {{"alone_code", to.gpu ? ".rodata.kernels" : ".text.kernels", p.sections.code, !to.gpu},
                       {"alone_plan", ".rodata.plan", p.sections.plan},
                       {"alone_text", ".rodata.text", p.sections.text},
                       {"alone_weights", ".rodata.weights", inside ? p.sections.weights : none}},
                      prefix);
}

// Links objects by the system's compiler, out of sight: a linker that is stopped leaves a part of its work.
void link(const Processors& to, const std::string& path, const std::vector<std::string_view>& objects,
          const std::vector<std::string>& flags) {
  TemporaryFolder folder;
  std::string made = folder.path + "/made";
  const char* set = environment("BRASA_CC");
  std::string cc(set ? set : to.compiler);
  std::vector<std::string> words = {cc, "-o", made};
  for (std::string_view object : objects) {
    words.push_back(str(folder.path, "/", words.size(), ".o"));
    write_file(words.back(), object);
  }
  words.insert(words.end(), flags.begin(), flags.end());
  std::optional<bool> linked = run_tool(words);
  BRASA_CHECK(linked, "export: ", path, " is linked by '", cc,
              "', which is not there: install one, name another by BRASA_CC, or export an object");
  BRASA_CHECK(*linked, "export: '", cc, "' could not link ", path);
  write_file(path, read_file(made), 0777);
}

// What a namespace of C++ cannot be named, with two macros that compilers for Linux define.
constexpr std::string_view kTakenNames =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class "
    "co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype "
    "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int "
    "linux long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast std struct switch "
    "template this thread_local throw true try typedef typeid typename union unix unsigned using virtual void volatile "
    "wchar_t while xor xor_eq ";

void check_name(const std::string& name) {
  bool good = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (unsigned char c : name) good = good && (std::isalnum(c) || c == '_');
  BRASA_CHECK(good, "export: '", name, "' is no name for C functions: letters, digits and _");
  BRASA_CHECK(kTakenNames.find(str(" ", name, " ")) == kTakenNames.npos, "export: '", name,
              "' is a word of C++, in which the program's header makes a namespace of its name");
}

void check_libraries(const ExportOptions& options, const Processors& to) {
  for (const std::string& name : options.libraries) {
    BRASA_CHECK(name == "cublaslt" || name == "cudnn", "export: there is no library '", name,
                "' for exported programs; these are: cublaslt, cudnn");
    BRASA_CHECK(to.gpu, "export: '", name, "' is a library for GPUs; the program is for ", to.name);
  }
}

std::vector<InputType> input_types(const std::vector<Tensor>& inputs, const ExportOptions& options) {
  std::vector<InputType> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    InputType t{i < options.input_names.size() ? options.input_names[i] : str("in", i), inputs[i].scalar_type(), {}};
    BRASA_CHECK(inputs[i].dim() <= 8, "export: input ", i, " has ", inputs[i].dim(),
                " dimensions; at most 8 are known");
    for (int64_t n : inputs[i].sizes().vec()) t.sizes.push_back({n, n});
    out.push_back(std::move(t));
  }
  for (size_t k = 0; k < options.dynamic.size(); ++k) {
    const DynamicSize& d = options.dynamic[k];
    BRASA_CHECK(d.input < out.size() && d.dim >= 0 && d.dim < static_cast<int64_t>(out[d.input].sizes.size()),
                "export: there is no dimension ", d.dim, " of input ", d.input);
    int64_t is = out[d.input].sizes[d.dim].least;
    BRASA_CHECK(d.least >= 0 && d.least <= is && is <= d.greatest, "export: dimension ", d.dim, " of input ", d.input,
                " is ", is, " in the example, which is not in ", d.least, " to ", d.greatest);
    InputType::Size& size = out[d.input].sizes[d.dim];
    BRASA_CHECK(d.factor > 0, "export: dimension ", d.dim, " of input ", d.input, " is ", d.factor,
                " times a size, expected a positive factor");
    size = {d.least, d.greatest, -1, -1, d.name.empty() ? str(d.input, ' ', d.dim) : d.name, d.factor, d.offset};
    for (size_t j = 0; j < k && size.same_input < 0 && !d.name.empty(); ++j)
      if (options.dynamic[j].name == d.name && options.dynamic[j].factor == d.factor &&
          options.dynamic[j].offset == d.offset) {
        size.same_input = static_cast<int>(options.dynamic[j].input);
        size.same_dim = static_cast<int>(options.dynamic[j].dim);
        BRASA_CHECK(inputs[size.same_input].size(size.same_dim) == is, "export: sizes named '", d.name,
                    "' differ in the example: ", inputs[size.same_input].size(size.same_dim), " and ", is);
      }
  }
  return out;
}

// What holds of a capture's symbols by the types of the inputs.
ir::Facts facts_of(const std::vector<InputType>& types, const Captured& captured) {
  ir::Facts facts = captured.facts;
  std::map<std::pair<int, int>, ir::Expr> first;
  for (size_t i = 0; i < captured.sources.size(); ++i) {
    int input = captured.sources[i].input;
    const ir::Shape& shape = ir::type_of(captured.graph->inputs()[i].value).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].is_constant()) continue;
      if (input < 0) {
        facts.equal(shape[d], facts.hint(shape[d]));
        continue;
      }
      if (static_cast<size_t>(input) >= types.size()) continue;  // an integer that is read
      const InputType::Size& s = types[input].sizes[d];
      if (s.fixed()) {
        facts.equal(shape[d], s.least);
        continue;
      }
      auto key = s.same_input >= 0 ? std::pair(s.same_input, s.same_dim) : std::pair(input, static_cast<int>(d));
      auto [at, fresh] = first.try_emplace(key, shape[d]);
      if (!fresh) facts.equal(shape[d], at->second);
    }
  }
  return facts;
}

// Those that are known when a stage begins.
ir::Facts known_facts(const ir::Facts& all, const Captured& captured, size_t stage) {
  std::vector<int64_t> hints;
  for (uint32_t id = 0; all.has_hint(ir::Expr::size(id)); ++id) hints.push_back(all.hint(ir::Expr::size(id)));
  ir::Facts out(std::move(hints));
  for (const ir::Fact& f : all.facts())
    if (std::max(captured.stages.stage_of(f.left), captured.stages.stage_of(f.right)) <= stage)
      out.equal(f.left, f.right);
  return out;
}

// The inputs' sizes with others where they vary: about `size`, each `apart` from the one before it, within their ranges. For a recording
// those that are 1 stay so, and a short range has other sizes for each `size`.
std::vector<std::vector<int64_t>> sizes_near(const std::vector<Tensor>& inputs, const std::vector<InputType>& types,
                                             int64_t size, int64_t apart, bool recording = false) {
  std::vector<std::vector<int64_t>> out;
  std::map<std::string, int64_t> chosen;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<int64_t> sizes = inputs[i].sizes().vec();
    for (size_t d = 0; d < sizes.size(); ++d) {
      const InputType::Size& s = types[i].sizes[d];
      if (s.fixed() || (recording && sizes[d] == 1)) continue;
      auto before = static_cast<int64_t>(chosen.size());
      auto [at, fresh] = chosen.try_emplace(s.symbol);
      if (fresh) {
        int64_t least = (s.least - s.offset + s.factor - 1) / s.factor, greatest = (s.greatest - s.offset) / s.factor;
        int64_t wanted = size + apart * (recording ? before * (before + 1) / 2 : before);
        if (wanted < least) wanted += least;
        if (recording && wanted > greatest)
          wanted = std::max({least, std::min<int64_t>(2, greatest), greatest - size % 5 - apart * before});
        at->second = std::min(std::max(wanted, least), greatest);
      }
      sizes[d] = s.factor * at->second + s.offset;
    }
    out.push_back(std::move(sizes));
  }
  return out;
}
std::vector<Tensor> resized(const std::vector<Tensor>& inputs, const std::vector<InputType>& types, int64_t size,
                            int64_t apart, bool recording = false) {
  std::vector<Tensor> out;
  for (const std::vector<int64_t>& sizes : sizes_near(inputs, types, size, apart, recording))
    out.push_back(zeros(sizes, TensorOptions(types[out.size()].dtype).device(Device(kCPU))));
  return out;
}

}  // namespace

namespace {

// `covered`: whether code takes inputs of these sizes.
void check_all_sizes(const std::vector<Tensor>& inputs, const std::vector<InputType>& types,
                     const std::function<bool(const std::vector<Tensor>&)>& covered) {
  auto check = [&](int64_t size, int64_t apart) {
    std::vector<Tensor> example;
    for (const std::vector<int64_t>& sizes : sizes_near(inputs, types, size, apart)) {
      double elements = 1;
      for (int64_t n : sizes) elements *= static_cast<double>(n);
      if (elements > 0x1p48) return;  // no memory has them
      example.push_back(zeros({}, TensorOptions(types[example.size()].dtype).device(Device(kCPU))).expand(sizes));
    }
    if (covered(example)) return;
    std::string given;
    for (size_t i = 0; i < example.size(); ++i)
      given += str(i ? ", " : "", "'", types[i].name, "' ", example[i].sizes());
    fail(str("export: there is no code for ", given, ", which the ranges allow and `strict` asks for: the program ",
             "depends on these sizes in a way that is not known (a branch on them, an integer that its own language ",
             "computes); give narrower ranges, or export without `strict`"));
  };
  for (int64_t apart : {0, 1}) {
    for (int64_t size = 0; size <= 200; ++size) check(size, apart);
    for (int64_t size = 256; size <= 1 << 20; size *= 2)
      for (int64_t by : {-1, 0, 1}) check(size + by, apart);
  }
}

// What no run changes.
std::vector<bool> lasting_inputs(const Captured& c, const std::vector<StateTensor>& state) {
  std::vector<bool> out;
  for (const Captured::Source& s : c.sources) {
    auto is = [&](const StateTensor& t) { return t.tensor.data_ptr() == s.tensor.data_ptr(); };
    out.push_back(s.tensor.defined() && s.input < 0 && !s.unknown && std::none_of(state.begin(), state.end(), is));
  }
  return out;
}

// Which integers recordings take beside the ones that they take first: all of a kind, or one.
std::vector<std::vector<CountKind>> kinds_of(size_t integers) {
  constexpr size_t kMany = 8;
  std::vector<std::vector<CountKind>> out;
  for (CountKind kind : {CountKind::None, CountKind::One, CountKind::All}) {
    if (integers > 0) out.push_back({kind});
    for (size_t k = 0; k < integers && integers > 1 && integers <= kMany; ++k) {
      out.emplace_back(integers + 1, CountKind::Some);
      out.back()[k] = kind;
    }
  }
  return out;
}

// `program` gives names to what it changes.
ExportedProgram exported(const Function& f, const std::vector<Tensor>& inputs, const ExportOptions& options,
                         const nn::Module* program) {
  check_name(options.name);
  if (!options.targets.empty()) check_libraries(options, processors_of(options));
  auto parts = std::make_shared<ExportedProgram::Parts>();
  parts->options = options;
  parts->inputs = input_types(inputs, options);
  Surroundings surroundings;
  std::deque<Captured>& captured = parts->captured;
  std::vector<Variant> variants;

  auto numbers = options.numbers.empty() ? compiler::default_numbers() : compiler::numbers_named(options.numbers);
  auto compile = [&](const Captured& c, const std::string& target, const std::vector<StateTensor>& state) {
    const Level& level = processors_with(target).level(target);
    compiler::CompilerOptions to;
    to.target = level.code;
    to.numbers = numbers;
    to.libraries = options.libraries;
    to.lasting = lasting_inputs(c, state);
    ir::Facts facts = facts_of(parts->inputs, c);
    Variant out{level.level, &c, {}, target, to.lasting, {}};
    for (size_t stage = 0; stage < c.stages.list.size(); ++stage) {
      bool is_last = stage + 1 == c.stages.list.size();
      ir::Facts known = is_last ? facts : known_facts(facts, c, stage);
      out.code.push_back(compiled(*c.stages.list[stage].graph, known, to));
      for (const ir::Fact& f : known.facts()) facts.equal(f.left, f.right);
    }
    out.facts = facts.facts();
    out.facts.insert(out.facts.end(), c.excluded.begin(), c.excluded.end());
    return out;
  };
  auto recorded = [&](const std::vector<Tensor>& example, int64_t apart, int64_t order,
                      const std::vector<CountKind>& kinds) {
    std::vector<std::vector<Tensor>> examples;
    if (!options.dynamic.empty())
      // The first sizes are such that hardly any function has them as numbers, too. None is an affine function of another one: an integer
      // follows from the size that it comes from, and from no other.
      for (auto [size, step] : {std::pair<int64_t, int64_t>(29, 3), {11, order}, {3, 1}})
        examples.push_back(resized(example, parts->inputs, size, step * apart, true));
    examples.push_back(example);
    return exporting::capture(f, examples, surroundings, kinds, captured.empty() || captured.front().one_graph);
  };
  auto record = [&](const std::vector<Tensor>& example, int64_t apart, const std::vector<CountKind>& kinds) {
    // Which of two sizes is the greater one differs, so that the lesser one is neither of them; unless the function needs their order.
    try {
      return recorded(example, apart, -1, kinds);
    } catch (const Error&) {
      if (options.dynamic.size() < 2 || apart == 0) throw;
      return recorded(example, apart, 1, kinds);
    }
  };
  auto add = [&](Captured c) {
    captured.push_back(std::move(c));
    std::vector<StateTensor> state = state_of(captured, surroundings, options, program);
    for (const std::string& target : options.targets) variants.push_back(compile(captured.back(), target, state));
  };
  // Whether a variant takes these sizes, as far as integers that the function reads are known.
  auto covered = [&](const std::vector<Tensor>& example, const std::vector<Tensor>& integers) {
    std::vector<Tensor> all = example;
    all.insert(all.end(), integers.begin(), integers.end());
    for (const Variant& v : variants) {
      if (!v.captured->takes(all)) continue;
      std::vector<int64_t> symbols = v.captured->symbols(all);
      std::vector<ir::Fact> facts = v.captured->known_with(v.facts, integers.size());
      if (program::Conditions(std::move(facts)).hold(symbols.data())) return true;
    }
    return false;
  };
  // Code for any integers is not for those that the function itself makes a difference for.
  auto exclude = [&](const Captured& special) {
    if (special.is_case_of(captured.front())) return;
    for (Captured& c : captured) {
      auto before = static_cast<int64_t>(c.excluded.size());
      for (size_t k = 0; k < std::min(special.counts.size(), c.counts.size()); ++k)
        if (std::optional<ir::Expr> e = c.symbol_of(k); e && !special.symbol_of(k))
          c.excluded.push_back({*e, ir::Expr(special.integers()[k].size(0)), false});
      for (Variant& v : variants)
        if (v.captured == &c) v.facts.insert(v.facts.end(), c.excluded.begin() + before, c.excluded.end());
    }
  };
  auto add_new = [&](const std::vector<Tensor>& example, int64_t apart, const std::vector<CountKind>& kinds) {
    Captured c = record(example, apart, kinds);
    if (kinds.size() > 1 || c.counts.size() == 1) exclude(c);
    if (!covered(example, c.integers())) add(std::move(c));
  };

  // Sizes that are equal in all examples are taken for one; those that have to be equal cannot differ in one.
  const std::vector<CountKind> some = {CountKind::Some};
  try {
    add(record(inputs, 1, some));
  } catch (const Error&) {
    if (options.dynamic.size() < 2) throw;
    add(record(inputs, 0, some));
  }
  const size_t integers = captured.front().counts.size();
  // Integers that the function reads lead to other code as sizes do: none, one, and as many as there are. A function may not take them.
  auto add_integers = [&](const std::vector<Tensor>& example) {
    for (const std::vector<CountKind>& kinds : kinds_of(integers)) try {
        add_new(example, 1, kinds);
      } catch (const Error&) {
      }
  };
  if (integers > 0 && !options.targets.empty()) add_integers(inputs);
  // Code for the example's sizes may take for granted what others lack: that a size is not 1, that it divides by 4, or is another one's.
  for (int64_t size : {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 31, 64}) {
    if (options.dynamic.empty() || options.targets.empty()) break;
    for (int64_t apart : {0, 1}) {
      std::vector<Tensor> example = resized(inputs, parts->inputs, size, apart);
      bool empty = std::any_of(example.begin(), example.end(), [](const Tensor& t) { return t.numel() == 0; });
      if (empty || (integers == 0 && covered(example, {}))) continue;
      try {
        add_new(example, apart, some);
      } catch (const Error&) {
        if (apart == 0 && integers == 0) throw;  // else these sizes do not go together, or no number is for them
      }
      if (integers > 0 && size < 3) add_integers(example);
    }
  }
  if (options.strict && !options.targets.empty())
    check_all_sizes(inputs, parts->inputs, [&](const std::vector<Tensor>& example) { return covered(example, {}); });
  parts->named = named_tensors(options, program);
  if (options.targets.empty()) return ExportedProgram(std::move(parts));
  // The best processor first.
  std::stable_sort(variants.begin(), variants.end(),
                   [](const Variant& a, const Variant& b) { return a.level > b.level; });

  const Captured& first = captured.front();
  std::vector<ir::Type> fresh;
  for (const ir::Output& o : first.graph->outputs())
    if (o.check.empty() && o.into < 0) fresh.push_back(ir::type_of(o.value));
  for (int o : first.outputs) {
    BRASA_CHECK(fresh[o].rank() <= 8, "export: a result has ", fresh[o].rank(), " dimensions; at most 8 are known");
    parts->outputs.push_back({fresh[o].dtype, fresh[o].rank()});
  }
  parts->state = state_of(captured, surroundings, options, program);
  // An earlier variant may read what only a later recording changes.
  for (Variant& v : variants)
    if (lasting_inputs(*v.captured, parts->state) != v.lasting) v = compile(*v.captured, v.target, parts->state);
  parts->sections = write_sections(parts->inputs, parts->outputs, parts->state, variants, processors_of(options).gpu);
  for (StateTensor& s : parts->state) s.tensor.reset();
  return ExportedProgram(std::move(parts));
}

}  // namespace

ExportedProgram detail::export_function(const Function& f, const std::vector<Tensor>& inputs,
                                        const ExportOptions& options) {
  return exported(f, inputs, options, nullptr);
}

ExportedProgram export_(const io::ExportedModule& program, ExportOptions options) {
  BRASA_CHECK(options.dynamic.empty() && options.input_names.empty(),
              "export: names and sizes of an imported program are its archive's");
  std::vector<Tensor> inputs;
  for (const io::ProgramInput& in : program->input_types()) {
    BRASA_CHECK(in.dtype, "export: input '", in.name, "' is a number; programs that run alone take tensors");
    std::vector<int64_t> sizes;
    for (const io::ProgramInput::Size& s : in.sizes) {
      if (s.least != s.greatest)
        options.dynamic.push_back(
            {inputs.size(), static_cast<int64_t>(sizes.size()), s.least, s.greatest, s.symbol, s.factor, s.offset});
      sizes.push_back(s.example);
    }
    options.input_names.push_back(in.name);
    inputs.push_back(zeros(sizes, TensorOptions(*in.dtype).device(Device(kCPU))));
  }
  auto f = [&](const std::vector<Tensor>& x) {
    NoGradGuard no_grad;
    std::vector<Tensor> results = program.ptr()->forward(x);
    std::erase_if(results, [](const Tensor& t) { return !t.defined(); });  // None, and texts
    return results;
  };
  return exported(f, inputs, options, program.ptr().get());
}

std::string ExportedProgram::header() const {
  return c_header(parts_->options.name, parts_->inputs, parts_->outputs, parts_->state, parts_->sections);
}
size_t ExportedProgram::code_bytes() const {
  return parts_->sections.code.size() + parts_->sections.plan.size() + parts_->sections.text.size();
}
size_t ExportedProgram::weight_bytes() const { return parts_->sections.weights.size(); }
size_t ExportedProgram::state_bytes() const { return static_cast<size_t>(parts_->sections.state_bytes); }
std::vector<std::string> ExportedProgram::state_names() const {
  std::vector<std::string> out;
  for (const StateTensor& s : parts_->state) out.push_back(s.name);
  return out;
}

namespace {

void check_has_code(const ExportedProgram::Parts& p) { BRASA_CHECK(!p.options.targets.empty(), "export: no target"); }

void write_headers(const ExportedProgram& program, const std::string& path, const ExportedProgram::Parts& parts) {
  write_file(path + ".h", program.header());
  write_file(path + ".hpp", cpp_header(parts.options.name, file_name(path) + ".h", parts.sections.gpu));
}

void write_weights(const ExportedProgram::Parts& p, const std::string& path) {
  if (p.options.weights_beside && p.sections.weight_bytes > 0) write_file(path + ".weights", p.sections.weights);
}

}  // namespace

void ExportedProgram::write_object(const std::string& path) const {
  check_has_code(*parts_);
  write_file(path + ".o", object_of(*parts_, parts_->options.name));
  write_headers(*this, path, *parts_);
  write_weights(*parts_, path);
}

void ExportedProgram::write_shared(const std::string& path) const {
  check_has_code(*parts_);
  std::string object = object_of(*parts_, parts_->options.name);
  link(processors_of(parts_->options), path + ".so", {object}, {"-shared", "-ldl"});
  write_headers(*this, path, *parts_);
  write_weights(*parts_, path);
}

void ExportedProgram::write_executable(const std::string& path) const {
  check_has_code(*parts_);
  const Processors& to = processors_of(parts_->options);
  link(to, path, {to.main, object_of(*parts_, "alone")}, {"-lm", "-ldl"});
  write_weights(*parts_, path);
}

void ExportedProgram::write_pt2(const std::string& path) const {
  write_archive(path, parts_->captured.front(), parts_->inputs, parts_->named);
}

}  // namespace brasa
