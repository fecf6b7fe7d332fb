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

std::string result_type(const Signature& s) {
  if (s.result == Result::List) return "std::vector<Tensor>";
  if (s.result == Result::Tensor) return "Tensor";
  std::string out = "std::tuple<";
  for (size_t i = 0; i < s.results; ++i) out += i ? ", Tensor" : "Tensor";
  return out + ">";
}

std::string arguments(const Signature& s, bool method) {
  std::string out;
  for (size_t i = 0; i < s.params.size(); ++i) {
    if (i) out += ", ";
    out += method && static_cast<int>(i) == s.self ? "*this" : s.params[i].argument;
  }
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
  std::set<std::string> names;  // of the header's functions that are in no inner namespace
};

// One form of a row; the same C++ signature is written once (relu_ of two rows named alike).
class Writer {
 public:
  void write(const Signature& s) {
    if (s.self >= 0) {
      if (fresh(str("method ", s.name, "(", types(s, s.self)))) {
        files_.methods += str(result_type(s), " ", s.name, "(", parameter_list(s, true, true), ") const;\n");
        files_.source +=
            str(result_type(s), " Tensor::", s.name, "(", parameter_list(s, true, false), ") const", body(s, true));
      }
    }
    // torch::special::gammaln is special_gammaln.
    for (std::string_view space : {"special", "linalg"})
      if (s.name.size() > space.size() && s.name.starts_with(space) && s.name[space.size()] == '_' &&
          fresh(str("in namespace ", s.name, "(", types(s, -1)))) {
        std::string open = str("namespace ", space, " {\n"), name = s.name.substr(space.size() + 1);
        files_.header +=
            str(open, "BRASA_API ", result_type(s), " ", name, "(", parameter_list(s, false, true), ");\n}\n");
        files_.source +=
            str(open, result_type(s), " ", name, "(", parameter_list(s, false, false), ")", body(s, false), "}\n");
      }
    if (fresh(str(s.name, "(", types(s, -1)))) {
      files_.names.insert(s.name);
      files_.header += str("BRASA_API ", result_type(s), " ", s.name, "(", parameter_list(s, false, true), ");\n");
      files_.source += str(result_type(s), " ", s.name, "(", parameter_list(s, false, false), ")", body(s, false));
    }
    if (s.writes) write_forms(s);
    if (s.options && s.row->random) write_generator_first(s);
  }
  const Files& files() const { return files_; }

 private:
  void write_forms(const Signature& s) {
    std::string op = str("eager::op(", s.index, ")");
    std::string in_place = s.name.ends_with("_") ? s.name : s.name + "_";
    const std::string& first = s.params[0].name;
    if (s.self == 0 && fresh(str("method ", in_place, "(", types(s, 0)))) {
      files_.methods += str("Tensor& ", in_place, "(", parameter_list(s, true, true), ") const;\n");
      files_.source +=
          str("Tensor& Tensor::", in_place, "(", parameter_list(s, true, false), ") const {\n  const CallArg a[] = {",
              arguments(s, true), "};\n  return eager::call_in_place(", op, ", a, *this);\n}\n");
    }
    std::string rest = parameter_list(s, false, true, 1), plain = parameter_list(s, false, false, 1);
    if (fresh(str(in_place, "(", types(s, -1)))) {
      auto params = [&](const std::string& others) {
        return str("Tensor& ", first, others.empty() ? "" : ", ", others);
      };
      files_.names.insert(in_place);
      files_.header += str("BRASA_API Tensor& ", in_place, "(", params(rest), ");\n");
      files_.source += str("Tensor& ", in_place, "(", params(plain), ") {\n  const CallArg a[] = {",
                           arguments(s, false), "};\n  return eager::call_in_place(", op, ", a, ", first, ");\n}\n");
    }
    std::string out_name = s.row->schema.base + "_out";
    if (fresh(str(out_name, "(", types(s, -1)))) {
      files_.names.insert(out_name);
      files_.header += str("BRASA_API Tensor& ", out_name, "(Tensor& out, ", parameter_list(s, false, true), ");\n");
      files_.source +=
          str("Tensor& ", out_name, "(Tensor& out, ", parameter_list(s, false, false), ") {\n  const CallArg a[] = {",
              arguments(s, false), "};\n  return eager::call_out(", op, ", a, out);\n}\n");
    }
  }
  // LibTorch's order: rand(size, generator, options).
  void write_generator_first(const Signature& s) {
    Signature other = s;
    auto& params = other.params;
    auto options = std::find_if(params.begin(), params.end(), [](const Parameter& p) { return p.name == "options"; });
    std::rotate(options, params.end() - 1, params.end());
    for (auto p = params.begin(); p <= options; ++p) p->default_value.clear();
    if (!fresh(str(s.name, "(", types(other, -1)))) return;
    files_.header += str("BRASA_API Tensor ", s.name, "(", parameter_list(other, false, true), ");\n");
    std::string names;
    for (const Parameter& p : s.params) names += str(names.empty() ? "" : ", ", p.name);
    files_.source +=
        str("Tensor ", s.name, "(", parameter_list(other, false, false), ") { return ", s.name, "(", names, "); }\n");
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
  for (const Signature& s : signatures(ops::table())) writer.write(s);
  const Files& f = writer.files();
  std::string header =
      str(kNotice, "#pragma once\n\n#include <cmath>\n\n#include <brasa/tensor.h>\n\nnamespace brasa {\n\n", f.header,
          "\n}  // namespace brasa\n");
  std::string source =
      str(kNotice, "#include <brasa/ops_generated.h>\n\n#include \"tensor/dispatch.h\"\n\nnamespace brasa {\n\n",
          f.source, "\n}  // namespace brasa\n");
  std::string names(kNotice);
  for (const std::string& name : f.names) names += str("using ::brasa::", name, ";\n");
  bool ok = write_if_changed(out / "include/brasa/operator_names.inc", names) &&
            write_if_changed(out / "include/brasa/ops_generated.h", header) &&
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
