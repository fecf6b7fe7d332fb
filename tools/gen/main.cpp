#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "ops/table.h"
#include "signature.h"
#include "support/str.h"

namespace brasa::gen {
namespace {

constexpr std::string_view kNotice = "// Written by brasa-gen from the operator table.\n";

std::string parameter_list(const Signature& s, bool method, bool defaults, size_t skip = 0) {
  std::string out;
  for (size_t i = skip; i < s.params.size(); ++i) {
    if (method && static_cast<int>(i) == s.self) continue;
    const Parameter& p = s.params[i];
    if (!out.empty()) out += ", ";
    out += str(p.type, " ", p.name);
    if (defaults && !p.default_value.empty()) out += str(" = ", p.default_value);
  }
  return out;
}

std::string after(const std::string& list, const std::string& item) {
  return list.empty() || item.empty() ? list + item : list + ", " + item;
}

std::string result_type(const Signature& s, const std::string& each = "Tensor") {
  if (s.result == Result::List) return "std::vector<Tensor>";
  if (s.result == Result::Tensor) return each;
  std::string items;
  for (size_t i = 0; i < s.results; ++i) items = after(items, each);
  return str("std::tuple<", items, ">");
}

// For name_out of a list.
constexpr std::string_view kWriteList = R"(namespace detail {
inline void write_list(TensorList out, TensorList results) {
  if (out.size() != results.size())
    throw Error("out: " + std::to_string(results.size()) + " tensors were expected, got " + std::to_string(out.size()));
  for (size_t i = 0; i < results.size(); ++i) {
    if (out[i].scalar_type() != results[i].scalar_type())
      throw Error("out: expected tensor " + std::to_string(i) + " to have dtype " + std::string(name(results[i].scalar_type())) +
                  ", but got " + std::string(name(out[i].scalar_type())));
    if (out[i].sizes() != results[i].sizes()) out[i].resize_(results[i].sizes());
    out[i].copy_(results[i]);
  }
}
}  // namespace detail

)";

constexpr std::string_view kOptionsApart =
    "TensorOptions().dtype(dtype).layout(layout).device(device).pinned_memory(pin_memory)";

std::string arguments(const Signature& s, bool method) {
  std::string out;
  for (size_t i = 0; i < s.params.size(); ++i)
    out = after(out, method && static_cast<int>(i) == s.self ? "*this" : s.params[i].argument);
  return out;
}

// `{ const CallArg a[] = {…}; return eager::…; }`
std::string body(const Signature& s, bool method) {
  std::string op = str("eager::op(", s.index, ")"), args = arguments(s, method);
  std::string pack = args.empty() ? "  const ArrayRef<CallArg> a;\n" : str("  const CallArg a[] = {", args, "};\n");
  if (s.result == Result::List) return str(" {\n", pack, "  return eager::call_list(", op, ", a);\n}\n");
  if (s.result == Result::Tensor && s.options)
    return str(" {\n", pack, "  return eager::with_options(eager::call_one(", op, ", a), options);\n}\n");
  if (s.result == Result::Tensor) return str(" {\n", pack, "  return eager::call_one(", op, ", a);\n}\n");
  std::string moves;
  for (size_t i = 0; i < s.results; ++i) moves += str(i ? ", " : "", "std::move(r[", i, "])");
  return str(" {\n", pack, "  Tensor r[", s.results, "];\n  eager::call_many(", op, ", a, r, ", s.results,
             ");\n  return {", moves, "};\n}\n");
}

struct Files {
  std::string header, methods, source;
  std::string forwarding;       // functions that are others with their parameters in another order
  std::set<std::string> names;  // of the header's functions that are in no inner namespace
};

// add_, and __iand__ of __and__.
std::string in_place_name(const std::string& name) {
  if (name.starts_with("__")) return "__i" + name.substr(2);
  return name.ends_with("_") ? name : name + "_";
}

// One form of a row; the same C++ signature is written once (relu_ of two rows named alike).
class Writer {
 public:
  void write(const Signature& s) {
    if (!s.by_hand) write_functional(s);
    if (s.in_place) write_in_place(s);
    if (s.options && !s.by_hand) write_orders(s);
  }
  // LibTorch's order: name_out(results…, parameters…), name_outf(parameters…, results…), where nothing has a default.
  void write_out(const Signature& s) {
    if (s.result == Result::List) return write_list_out(s);
    bool one = s.result == Result::Tensor;
    std::string results, names, addresses;
    for (size_t i = 0; i < s.results; ++i) {
      std::string name = one ? "out" : str("out", i);
      results = after(results, str("Tensor& ", name));
      names = after(names, name);
      addresses = after(addresses, "&" + name);
    }
    std::string passed = names_of(s);
    std::string base = s.row->schema.base, name = base + "_out";
    if (!fresh(str(name, "(", results, ",", types(s, -1)))) return;
    std::string op = str("eager::op(", s.index, ")"), result = result_type(s, "Tensor&");
    std::string does = one ? str("  return eager::call_out(", op, ", a, out);\n}\n")
                           : str("  Tensor* outs[] = {", addresses, "};\n  eager::call_outs(", op,
                                 ", a, outs);\n  return {", names, "};\n}\n");
    std::string declared = parameter_list(s, false, true), defined = parameter_list(s, false, false);
    write_in_namespaces(result, name, after(results, declared), after(results, defined),
                        str(" {\n  const CallArg a[] = {", arguments(s, false), "};\n", does));
    files_.names.insert(base + "_outf");
    files_.forwarding += str("inline ", result, " ", base, "_outf(", after(defined, results), ") { return ", name, "(",
                             after(names, passed), "); }\n");
    if (s.row->random) write_generator_orders(s, result, results, names);
  }
  const Files& files() const { return files_; }

 private:
  static std::string names_of(const Signature& s) {
    std::string out;
    for (const Parameter& p : s.params) out = after(out, p.name);
    return out;
  }

  void write_list_out(const Signature& s) {
    std::string name = s.row->schema.base + "_out", taken = parameter_list(s, false, false), passed = names_of(s);
    if (!fresh(str(name, "(TensorList,", types(s, -1)))) return;
    files_.names.insert({name, name + "f"});
    files_.forwarding += str("inline void ", name, "(TensorList out, ", parameter_list(s, false, true),
                             ") { detail::write_list(out, ", s.name, "(", passed, ")); }\ninline void ", name, "f(",
                             taken, ", TensorList out) { ", name, "(out, ", passed, "); }\n");
  }

  // A generator is the last parameter of a row. LibTorch has forms without one, and with one before a memory format.
  void write_generator_orders(const Signature& s, const std::string& result, const std::string& results,
                              const std::string& names) {
    std::string name = s.row->schema.base + "_out";
    Signature without = s, first = s;
    without.params.pop_back();
    if (fresh(str(name, "f(", types(without, -1), results)))
      files_.forwarding +=
          str("inline ", result, " ", name, "f(", after(parameter_list(without, false, false), results), ") { return ",
              name, "(", after(names, names_of(without)), "); }\n");
    if (without.params.empty() || without.params.back().name != "memory_format") return;
    std::rotate(first.params.end() - 2, first.params.end() - 1, first.params.end());
    for (auto p = first.params.begin(); p != first.params.end() - 1; ++p) p->default_value.clear();
    std::string call = str(") { return ", name, "(", after(names, names_of(s)), "); }\n");
    files_.forwarding +=
        str("inline ", result, " ", name, "(", after(results, parameter_list(first, false, true)), call, "inline ",
            result, " ", name, "f(", after(parameter_list(first, false, false), results), call);
  }

  void write_functional(const Signature& s) {
    if (s.self >= 0 && fresh(str("method ", s.name, "(", types(s, s.self)))) {
      files_.methods += str(result_type(s), " ", s.name, "(", parameter_list(s, true, true), ") const;\n");
      files_.source +=
          str(result_type(s), " Tensor::", s.name, "(", parameter_list(s, true, false), ") const", body(s, true));
    }
    if (fresh(str(s.name, "(", types(s, -1))))
      write_in_namespaces(result_type(s), s.name, parameter_list(s, false, true), parameter_list(s, false, false),
                          body(s, false));
  }

  void write_function(const std::string& result, const std::string& name, const std::string& declared,
                      const std::string& defined, const std::string& does) {
    files_.names.insert(name);
    files_.header += str("BRASA_API ", result, " ", name, "(", declared, ");\n");
    files_.source += str(result, " ", name, "(", defined, ")", does);
  }

  // torch::special::gammaln is special_gammaln.
  void write_in_namespaces(const std::string& result, const std::string& name, const std::string& declared,
                           const std::string& defined, const std::string& does) {
    write_function(result, name, declared, defined, does);
    for (std::string_view space : {"special", "linalg"}) {
      if (name.size() <= space.size() || !name.starts_with(space) || name[space.size()] != '_') continue;
      std::string open = str("namespace ", space, " {\n"), inner = name.substr(space.size() + 1);
      files_.header += str(open, "BRASA_API ", result, " ", inner, "(", declared, ");\n}\n");
      files_.source += str(open, result, " ", inner, "(", defined, ")", does, "}\n");
    }
  }

  void write_in_place(const Signature& s) {
    std::string op = str("eager::op(", s.index, ")");
    std::string in_place = in_place_name(s.name);
    const std::string& first = s.params[0].name;
    if (s.self == 0 && fresh(str("method ", in_place, "(", types(s, 0)))) {
      files_.methods += str("Tensor& ", in_place, "(", parameter_list(s, true, true), ") const;\n");
      files_.source +=
          str("Tensor& Tensor::", in_place, "(", parameter_list(s, true, false), ") const {\n  const CallArg a[] = {",
              arguments(s, true), "};\n  return eager::call_in_place(", op, ", a, *this);\n}\n");
    }
    if (!fresh(str(in_place, "(", types(s, -1)))) return;
    auto params = [&](bool defaults) { return after(str("Tensor& ", first), parameter_list(s, false, defaults, 1)); };
    write_function("Tensor&", in_place, params(true), params(false),
                   str(" {\n  const CallArg a[] = {", arguments(s, false), "};\n  return eager::call_in_place(", op,
                       ", a, ", first, ");\n}\n"));
  }

  // LibTorch's order: rand(size, generator, options).
  static Signature generator_first(const Signature& s) {
    Signature out = s;
    auto options = std::find_if(out.params.begin(), out.params.end(), is_options);
    std::rotate(options, out.params.end() - 1, out.params.end());
    for (auto p = out.params.begin(); p <= options; ++p) p->default_value.clear();
    return out;
  }

  // zeros(size, dtype, layout, device, pin_memory).
  static Signature options_apart(const Signature& s) {
    Signature out = s;
    for (Parameter& p : out.params) p.default_value.clear();
    auto options = out.params.erase(std::find_if(out.params.begin(), out.params.end(), is_options));
    out.params.insert(options, {{"std::optional<DType>", "dtype", "", ""},
                                {"std::optional<Layout>", "layout", "", ""},
                                {"std::optional<Device>", "device", "", ""},
                                {"std::optional<bool>", "pin_memory", "", ""}});
    return out;
  }

  void write_orders(const Signature& s) {
    if (!s.row->random) return write_forwarding(options_apart(s), s, files_.forwarding);
    Signature first = generator_first(s), without = s;
    write_forwarding(first, s, files_.header);
    write_forwarding(options_apart(first), s, files_.forwarding);
    without.params.pop_back();
    write_forwarding(options_apart(without), without, files_.forwarding);
  }

  // Another order of the same parameters.
  void write_forwarding(const Signature& form, const Signature& s, std::string& functions) {
    std::string options(std::any_of(form.params.begin(), form.params.end(), is_options) ? "options" : kOptionsApart);
    auto passed = [&](int skip) {
      std::string out;
      for (size_t i = 0; i < s.params.size(); ++i)
        if (static_cast<int>(i) != skip) out = after(out, is_options(s.params[i]) ? options : s.params[i].name);
      return str(" { return ", s.name, "(", out, "); }\n");
    };
    // LibTorch's only methods with options.
    if (s.name.starts_with("new_") && fresh(str("method ", s.name, "(", types(form, s.self))))
      files_.methods +=
          str(result_type(s), " ", s.name, "(", parameter_list(form, true, true), ") const", passed(s.self));
    if (!fresh(str(s.name, "(", types(form, -1)))) return;
    files_.names.insert(s.name);
    functions += str("inline ", result_type(s), " ", s.name, "(", parameter_list(form, false, true), ")", passed(-1));
  }

  static std::string types(const Signature& s, int skip) {
    std::string out;
    for (size_t i = 0; i < s.params.size(); ++i)
      if (static_cast<int>(i) != skip) out += s.params[i].type + ",";
    return out;
  }
  bool fresh(std::string key) { return seen_.insert(std::move(key)).second; }

  Files files_;
  std::set<std::string> seen_;
};

bool write_if_changed(const std::filesystem::path& path, const std::string& text) {
  {
    std::ifstream in(path, std::ios::binary);
    if (in && std::string(std::istreambuf_iterator<char>(in), {}) == text) return true;
  }
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  return static_cast<bool>(out.flush());
}

int run(const std::filesystem::path& out) {
  Writer writer;
  std::vector<Signature> all = signatures(ops::table());
  for (const Signature& s : all) writer.write(s);
  for (const Signature& s : out_signatures(all)) writer.write_out(s);
  const Files& f = writer.files();
  std::string header =
      str(kNotice, "#pragma once\n\n#include <cmath>\n\n#include <brasa/tensor.h>\n\nnamespace brasa {\n\n", f.header,
          "\n}  // namespace brasa\n");
  std::string forwarding = str(
      kNotice, "#pragma once\n\n#include <brasa/error.h>\n#include <brasa/ops_generated.h>\n\nnamespace brasa {\n\n",
      kWriteList, f.forwarding, "\n}  // namespace brasa\n");
  std::string source =
      str(kNotice, "#include <brasa/ops_generated.h>\n\n#include \"tensor/dispatch.h\"\n\nnamespace brasa {\n\n",
          f.source, "\n}  // namespace brasa\n");
  std::string names(kNotice);
  for (const std::string& name : f.names) names += str("using ::brasa::", name, ";\n");
  bool ok = write_if_changed(out / "include/brasa/operator_names.inc", names) &&
            write_if_changed(out / "include/brasa/ops_generated.h", header) &&
            write_if_changed(out / "include/brasa/ops_forwarding.h", forwarding) &&
            write_if_changed(out / "include/brasa/tensor_methods.inc", str(kNotice, f.methods)) &&
            write_if_changed(out / "ops_generated.cpp", source);
  if (!ok) std::fprintf(stderr, "brasa-gen: cannot write to %s\n", out.c_str());
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace brasa::gen

int main(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "--out") {
    std::fprintf(stderr, "usage: brasa-gen --out <folder>\n");
    return 2;
  }
  return brasa::gen::run(argv[2]);
}
