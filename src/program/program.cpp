#include "program/program.h"

#include <algorithm>
#include <charconv>

#include "runtime/device.h"
#include "support/error.h"

namespace brasa::program {

Symbols::Symbols(const ir::Graph& graph) {
  std::vector<bool> bound;
  auto source = [&](ir::Expr e, size_t input, size_t dim, bool stride) {
    if (e->kind != ir::ExprKind::Size) return;
    if (bound.size() <= e->id) bound.resize(e->id + 1);
    if (bound[e->id]) return;
    bound[e->id] = true;
    sources_.push_back({e->id, static_cast<uint32_t>(input), static_cast<uint32_t>(dim), stride});
  };
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Shape& shape = ir::type_of(graph.inputs()[i].value).shape;
    for (size_t d = 0; d < shape.size(); ++d) source(shape[d], i, d, false);
    const auto& strides = graph.inputs()[i].strides;
    for (size_t d = 0; d < strides.size(); ++d) source(strides[d], i, d, true);
  }
  count_ = bound.size();
}

void Symbols::bind(std::span<const compiler::Operand> inputs, int64_t* symbols) const {
  for (const Source& s : sources_)
    symbols[s.symbol] = s.stride ? inputs[s.input].strides[s.dim] : inputs[s.input].sizes[s.dim];
}

Program::Program(std::unique_ptr<ir::Graph> g, runtime::Device& on, std::vector<Result> gives)
    : graph(std::move(g)), device(&on), results(std::move(gives)), symbols(*graph) {
  reads.resize(graph->inputs().size());
  for (ir::Node* n : ir::live_nodes(*graph))
    if (int i = n->op == ir::input_op() ? graph->input_index(n->out()) : -1; i >= 0) reads[i] = true;
}

Program::Program(std::unique_ptr<ir::Graph> g, runtime::Device& on) : Program(std::move(g), on, {}) {
  for (uint32_t i = 0; i < graph->outputs().size(); ++i)
    if (graph->outputs()[i].check.empty()) results.push_back({Result::From::Output, i});
}

std::string print(const Program& p) {
  std::string out = str("program on ", p.device->str(), " gives");
  for (size_t i = 0; i < p.results.size(); ++i) {
    const Result& r = p.results[i];
    out += i ? ", " : " ";
    if (r.from == Result::From::Nothing)
      out += "nothing";
    else
      out += str(r.from == Result::From::Output ? "output " : "input ", r.index);
  }
  return out + "\n" + ir::print(*p.graph, p.conditions.facts());
}

namespace {

// The words of the first line.
class Words {
 public:
  explicit Words(std::string_view line) : left_(line) {}
  bool at_end() const { return left_.empty(); }
  std::string_view next() {
    size_t end = std::min(left_.find(' '), left_.size());
    std::string_view word = left_.substr(0, end);
    left_.remove_prefix(std::min(end + 1, left_.size()));
    return word;
  }
  void expect(std::string_view wanted) {
    std::string_view word = next();
    BRASA_CHECK(word == wanted, "program text, line 1: expected '", wanted, "', got '", word, "'");
  }

 private:
  std::string_view left_;
};

Result result_of(Words& words, bool& more) {
  auto without_comma = [&](std::string_view word) {
    more = word.ends_with(',');
    return word.substr(0, word.size() - more);
  };
  std::string_view from = without_comma(words.next());
  if (from == "nothing") return {};
  BRASA_CHECK(from == "output" || from == "input", "program text, line 1: expected output, input or nothing, got '",
              from, "'");
  std::string_view number = without_comma(words.next());
  Result r{from == "output" ? Result::From::Output : Result::From::Input};
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), r.index);
  BRASA_CHECK(error == std::errc() && end == number.data() + number.size(), "program text, line 1: '", number,
              "' is no position");
  return r;
}

}  // namespace

Program parse(std::string_view text, const ir::OpFinder& find) {
  size_t end = std::min(text.find('\n'), text.size());
  Words words(text.substr(0, end));
  words.expect("program");
  words.expect("on");
  runtime::Device& device = runtime::device_of(Device(std::string(words.next())));
  words.expect("gives");
  std::vector<Result> results;
  for (bool more = !words.at_end(); more;) results.push_back(result_of(words, more));
  BRASA_CHECK(words.at_end(), "program text, line 1: text behind the results");
  std::vector<ir::Fact> facts;
  Program p(ir::parse(text.substr(end), find, &facts), device, std::move(results));
  for (const Result& r : p.results) {
    size_t count = r.from == Result::From::Input ? p.graph->inputs().size() : p.graph->outputs().size();
    BRASA_CHECK(r.from == Result::From::Nothing || r.index < count, "program text, line 1: there is no ",
                r.from == Result::From::Input ? "input " : "output ", r.index);
  }
  p.conditions = Conditions(std::move(facts));
  return p;
}

}  // namespace brasa::program
