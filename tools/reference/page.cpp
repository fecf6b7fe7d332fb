#include "page.h"

#include <algorithm>

#include "example.h"
#include "facts.h"
#include "support/str.h"

namespace brasa::reference {
namespace {

// As cmake/Reference.cmake makes it.
std::string slug_of(std::string_view title) {
  std::string out;
  for (char c : title) {
    bool word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (word)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  return out;
}

// Text that Markdown must not read as markup.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view("\\`*_<>[]|#").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string dtype_list(const std::vector<DType>& types) {
  struct Group {
    const char* name;
    bool (*holds)(DType t);
  };
  static const Group kGroups[] = {
      {"bool", [](DType t) { return t == DType::Bool; }},
      {"integers", [](DType t) { return is_integral(t, false); }},
      {"floating", [](DType t) { return is_floating(t); }},
      {"complex", [](DType t) { return is_complex(t); }},
  };
  std::string out;
  auto add = [&](std::string_view s) { out += str(out.empty() ? "" : ", ", s); };
  for (const Group& g : kGroups) {
    std::vector<DType> present;
    std::copy_if(types.begin(), types.end(), std::back_inserter(present), g.holds);
    size_t all = 0;
    for (const DTypeInfo& info : kDTypes) all += info.computes && g.holds(info.dtype);
    if (present.size() == all)
      add(g.name);
    else
      for (DType t : present) add(name(t));
  }
  return out;
}

std::string facts_text(const Operator& op) {
  std::vector<DType> dtypes;
  bool differentiable = false, random = false, view = false, sized = false, in_place = false, has_out = false,
       primitive = false;
  for (size_t i = 0; i < op.rows.size(); ++i) {
    const ops::Row& row = *op.rows[i];
    Facts f = facts_of(row);
    for (DType t : f.dtypes)
      if (std::find(dtypes.begin(), dtypes.end(), t) == dtypes.end()) dtypes.push_back(t);
    differentiable = differentiable || f.differentiable;
    random = random || row.random;
    view = view || row.view;
    sized = sized || row.count;
    primitive = primitive || row.is_primitive();
    in_place = in_place || (op.functions[i] && op.functions[i]->in_place);
    has_out = has_out || (op.functions[i] && op.functions[i]->has_out);
  }
  std::string out;
  auto line = [&](std::string text) { out += str("- ", text, "\n"); };
  if (!dtypes.empty()) line(str("dtypes: ", dtype_list(dtypes)));
  line(differentiable ? "differentiable" : "without gradient");
  if (view) line("a view: the result shares the operand's memory where strides allow it");
  if (random) line("random: draws from the generator");
  if (sized) line("the result's size depends on values");
  if (primitive) line("a primitive");
  if (in_place || has_out)
    line(str("also ", in_place ? str("`", op.name, "_` in place") : "", in_place && has_out ? " and " : "",
             has_out ? str("`", op.name, "_out`") : ""));
  return out;
}

std::string operator_text(const Operator& op, const Printed& printed) {
  std::string out = str("## ", escaped(op.name), "\n\n```text\n");
  for (const ops::Row* row : op.rows) {
    append_to(out, row->schema);
    out += '\n';
  }
  out += "```\n\n";
  std::vector<std::string> said;
  for (const ops::Row* row : op.rows)
    if (!row->doc.empty() && std::find(said.begin(), said.end(), row->doc) == said.end()) said.push_back(row->doc);
  for (const std::string& doc : said) out += str(escaped(doc), "\n\n");
  out += str(facts_text(op), "\n");
  if (op.example.empty()) return out;
  out += str("```cpp\n", op.example, "```\n\n");
  if (auto it = printed.find(op.name); it != printed.end()) out += str("```text\n", it->second, "```\n\n");
  return out;
}

}  // namespace

std::vector<Page> pages_of(const std::vector<gen::Signature>& functions) {
  std::vector<Page> out;
  const auto& rows = ops::table().rows();
  auto function = functions.begin();  // in the order of the rows
  for (const ops::Family& family : ops::families()) {
    Page page{std::string(family.title), slug_of(family.title), {}};
    for (size_t i = family.first; i < family.last; ++i) {
      const ops::Row& row = rows[i];
      while (function != functions.end() && function->index < i) ++function;
      bool has = function != functions.end() && function->index == i && !function->by_hand;
      auto it = std::find_if(page.operators.begin(), page.operators.end(),
                             [&](const Operator& op) { return op.name == row.schema.base; });
      if (it == page.operators.end()) it = page.operators.insert(it, {row.schema.base, {}, {}, {}});
      it->rows.push_back(&row);
      it->functions.push_back(has ? &*function : nullptr);
      if (it->example.empty()) it->example = example_of(row, it->functions.back()).value_or("");
    }
    out.push_back(std::move(page));
  }
  return out;
}

std::string page_text(const Page& page, const Printed& printed) {
  std::string out = str("# ", page.title, "\n\nWritten by `make docs` from the operator table.\n\n");
  for (const Operator& op : page.operators) out += operator_text(op, printed);
  return out;
}

std::string index_text(const std::vector<Page>& pages) {
  std::string out = "# Operators\n\n";
  for (const Page& page : pages) {
    out += str("- [", page.title, "](", page.slug, ".md):");
    for (const Operator& op : page.operators) out += str(&op == page.operators.data() ? " " : ", ", escaped(op.name));
    out += '\n';
  }
  return out;
}

std::string program_text(const Page& page) {
  std::string examples, list;
  int number = 0;
  for (const Operator& op : page.operators) {
    if (op.example.empty()) continue;
    examples += str("void example", number, "() {\n", op.example, "}\n\n");
    list += str("    {\"", op.name, "\", example", number, "},\n");
    ++number;
  }
  return str(
      "#include <brasa/brasa.h>\n#include <brasa/call.h>\n\n#include <cmath>\n#include <cstdio>\n#include <fstream>\n"
      "#include <iostream>\n\nnamespace {\n\n",
      examples, "struct Example {\n  const char* name;\n  void (*run)();\n};\nconst Example kExamples[] = {\n", list,
      "    {nullptr, nullptr},\n};\n\n}  // namespace\n\n"
      "int main(int, char** argv) {\n  std::ofstream out(argv[1]);\n  std::cout.rdbuf(out.rdbuf());\n"
      "  int failed = 0;\n  for (const Example* e = kExamples; e->run; ++e) {\n    std::cout << '\\f' << e->name << '\\n';\n"
      "    try {\n      e->run();\n    } catch (const std::exception& error) {\n"
      "      std::fprintf(stderr, \"%s: %s\\n\", e->name, error.what());\n      failed = 1;\n    }\n  }\n"
      "  std::cout.flush();\n  std::cout.rdbuf(nullptr);\n  return failed;\n}\n");
}

Printed read_printed(const std::string& text) {
  Printed out;
  for (size_t at = text.find('\f'); at != text.npos;) {
    size_t line = text.find('\n', at), next = text.find('\f', at + 1);
    if (line == text.npos) break;
    out[text.substr(at + 1, line - at - 1)] = text.substr(line + 1, next == text.npos ? next : next - line - 1);
    at = next;
  }
  return out;
}

}  // namespace brasa::reference
