#include <sstream>
#include <stdexcept>

#include "fuzz/program.h"

namespace brasa::fuzz {

// "double", then lines "function: sin 0 1 2; add 1 0 3;" and "call: function rows number alias after gradient leaf hook shared".
std::string text(const Program& p) {
  std::ostringstream out;
  out << (p.single ? "single" : "double") << "\n";
  for (const auto& body : p.functions) {
    out << "function:";
    for (const Instruction& i : body) out << " " << i.op << " " << i.a << " " << i.b << " " << i.c << ";";
    out << "\n";
  }
  for (const Call& c : p.calls)
    out << "call: " << c.function << " " << c.rows << " " << c.number << " " << static_cast<int>(c.alias) << " "
        << static_cast<int>(c.after) << " " << c.gradient << " " << c.leaf << " " << c.hook << " " << c.shared_tensor
        << "\n";
  return out.str();
}

Program parse(std::string_view text) {
  Program p;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string word;
    if (!(in >> word)) continue;
    if (word == "single" || word == "double") {
      p.single = word == "single";
    } else if (word == "function:") {
      auto& body = p.functions.emplace_back();
      for (std::string part; std::getline(in, part, ';');) {
        std::istringstream words(part);
        Instruction i;
        std::vector<std::string> all;
        for (std::string w; words >> w;) all.push_back(w);
        if (all.size() < 4) continue;
        for (size_t k = 0; k + 3 < all.size(); ++k) i.op += (k ? " " : "") + all[k];
        i.a = std::stoi(all[all.size() - 3]);
        i.b = std::stoi(all[all.size() - 2]);
        i.c = std::stoi(all[all.size() - 1]);
        body.push_back(i);
      }
    } else if (word == "call:") {
      Call& c = p.calls.emplace_back();
      int alias = 0, after = 0;
      in >> c.function >> c.rows >> c.number >> alias >> after >> c.gradient >> c.leaf >> c.hook >> c.shared_tensor;
      c.alias = static_cast<Alias>(alias);
      c.after = static_cast<After>(after);
    } else {
      throw std::invalid_argument("no line of a program: " + line);
    }
  }
  return p;
}

}  // namespace brasa::fuzz
