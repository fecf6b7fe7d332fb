#include "ptx.h"

#include <string_view>

#include "ptx_machine.h"

namespace brasa::fakes {

class Program {
 public:
  std::vector<Instruction> code;
  int registers = 0;
  size_t shared = 0;
  unsigned cluster = 1;  // blocks that run together
};

namespace {

class Parser {
 public:
  std::shared_ptr<const Program> parse(const std::string& text) {
    auto out = std::make_shared<Program>();
    std::map<std::string, size_t> labels;
    size_t at = text.find('{');
    constexpr std::string_view kCluster = ".reqnctapercluster ";
    if (size_t cluster = text.find(kCluster); cluster < at)
      out->cluster = static_cast<unsigned>(std::stoul(text.substr(cluster + kCluster.size())));
    while (at < text.size()) {
      size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = trimmed(std::string_view(text).substr(at, end - at));
      at = end + 1;
      if (line.starts_with(".shared"))
        out->shared = std::stoul(std::string(line.substr(line.find('[') + 1)));
      else if (line.ends_with(':'))
        labels[std::string(line.substr(0, line.size() - 1))] = out->code.size();
      else if (!line.empty() && line[0] != '.' && line != "{" && line != "}" && line != "ret;")
        out->code.push_back(instruction(line));
    }
    for (Instruction& i : out->code)
      if (i.branch) i.target = labels.at(i.label);
    out->registers = static_cast<int>(registers_.size());
    return out;
  }

 private:
  static std::string_view trimmed(std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
  }
  int reg(std::string_view name) {
    return registers_.emplace(std::string(name), static_cast<int>(registers_.size())).first->second;
  }

  Instruction instruction(std::string_view line) {
    if (!line.ends_with(';')) fail("no instruction: " + std::string(line));
    line.remove_suffix(1);
    Instruction out;
    if (line[0] == '@') {
      size_t space = line.find(' ');
      out.guard = reg(line.substr(1, space - 1));
      line = trimmed(line.substr(space));
    }
    size_t space = std::min(line.find(' '), line.size());
    out.name = line.substr(0, space);
    line = trimmed(line.substr(space));
    if (out.name == "bra") {
      out.branch = true;
      out.label = line;
      return out;
    }
    out.of_cluster = out.name == "barrier.cluster.wait.aligned";
    out.barrier = out.name == "bar.sync" || out.of_cluster;
    auto it = instructions().find(out.name);
    if (it == instructions().end()) fail("there is no instruction " + out.name);
    out.does = it->second;
    int depth = 0;
    size_t start = 0;
    for (size_t i = 0; i <= line.size(); ++i) {
      if (i < line.size() && (line[i] == '{' || line[i] == '[')) ++depth;
      if (i < line.size() && (line[i] == '}' || line[i] == ']')) --depth;
      if (i < line.size() && (line[i] != ',' || depth)) continue;
      if (i > start) out.operands.push_back(operand(trimmed(line.substr(start, i - start))));
      start = i + 1;
    }
    return out;
  }

  Operand operand(std::string_view s) {
    Operand out;
    if (s == "%tid.x" || s == "%ctaid.x") {
      out.kind = s[1] == 't' ? Operand::Thread : Operand::Block;
    } else if (s[0] == '%') {
      out.kind = Operand::Register;
      out.reg = reg(s);
    } else if (s[0] == '{') {
      out.kind = Operand::List;
      for (s = s.substr(1, s.size() - 2); !s.empty();) {
        size_t end = std::min(s.find(','), s.size());
        out.list.push_back(reg(trimmed(s.substr(0, end))));
        s.remove_prefix(std::min(end + 1, s.size()));
      }
    } else if (s[0] == '[') {
      s = s.substr(1, s.size() - 2);
      if (s[0] == 'p') {
        out.kind = Operand::Parameter;
        out.value = std::stol(std::string(s.substr(1)));
        return out;
      }
      size_t plus = s.find('+');
      out.kind = Operand::Memory;
      out.reg = reg(s.substr(0, plus));
      if (plus != s.npos) out.value = std::stol(std::string(s.substr(plus + 1)));
    } else if (s.starts_with("0f")) {
      out.value = static_cast<int64_t>(std::stoul(std::string(s.substr(2)), nullptr, 16));
    } else if (s == "shared_memory") {
      out.value = 0;
    } else {
      out.value = std::stol(std::string(s));
    }
    return out;
  }

  std::map<std::string, int> registers_;
};

// One warp; it stops at barriers.
class Warp {
 public:
  Warp(const Program& p, Machine machine)
      : program_(p), registers_(static_cast<size_t>(p.registers)), machine_(machine) {
    machine_.registers = &registers_;
  }
  bool done() const { return at_[0] >= program_.code.size() && lanes_at(program_.code.size()) == kAll; }

  void run() {
    machine_.registers = &registers_;
    while (!done()) {
      size_t pc = program_.code.size();
      for (size_t at : at_) pc = std::min(pc, at);
      const Instruction& i = program_.code[pc];
      uint32_t lanes = lanes_at(pc), active = lanes;
      if (i.guard >= 0)
        each(lanes, [&](int l) {
          if (!registers_[i.guard][l]) active &= ~(1u << l);
        });
      if (!i.branch) i.does(machine_, i, active);
      each(lanes, [&](int l) { at_[l] = i.branch && (active >> l & 1) ? i.target : pc + 1; });
      if (!i.barrier) continue;
      if (lanes != kAll) fail("a barrier for a part of a warp");
      ++machine_.passed.of_block;
      machine_.passed.of_cluster += i.of_cluster;
      return;
    }
  }

 private:
  uint32_t lanes_at(size_t pc) const {
    uint32_t out = 0;
    for (int l = 0; l < kLanes; ++l) out |= uint32_t{at_[l] == pc} << l;
    return out;
  }
  const Program& program_;
  std::vector<std::array<uint64_t, kLanes>> registers_;
  std::array<size_t, kLanes> at_{};
  Machine machine_;
};

}  // namespace

std::shared_ptr<const Program> parse_ptx(const std::string& text) { return Parser().parse(text); }

void run(const Program& program, unsigned blocks, unsigned threads, size_t given, void* const* parameters) {
  if (blocks % program.cluster) fail(std::to_string(blocks) + " blocks are no clusters");
  for (unsigned b = 0; b < blocks; b += program.cluster) {
    size_t bytes = program.shared + given;
    // NaN, until something is there.
    std::vector<Shared> shared(program.cluster,
                               {std::vector<std::byte>(bytes, std::byte{0xff}), std::vector<Uses>((bytes + 3) / 4)});
    std::vector<Warp> warps;
    for (unsigned rank = 0; rank < program.cluster; ++rank)
      for (unsigned t = 0; t < threads; t += kLanes)
        warps.emplace_back(program, Machine{nullptr, &shared, b + rank, t, parameters});
    for (bool more = true; more;) {
      more = false;
      for (Warp& w : warps) {
        w.run();
        more = more || !w.done();
      }
    }
  }
}

}  // namespace brasa::fakes
