#include "ptx.h"

#include <optional>
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
    out.stop = out.name == "bar.sync"                        ? Instruction::OfBlock
               : out.name == "barrier.cluster.wait.aligned"  ? Instruction::OfCluster
               : out.name == "wgmma.wait_group.sync.aligned" ? Instruction::OfGroup
                                                             : Instruction::None;
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
      if (size_t list = s.find(", {"); list != s.npos) {
        out = operand(trimmed(s.substr(list + 1)));
        s = s.substr(0, list);
      }
      size_t plus = s.find('+');
      out.kind = Operand::Memory;
      out.reg = reg(s.substr(0, plus));
      if (plus != s.npos) out.value = std::stol(std::string(s.substr(plus + 1)));
    } else if (s.starts_with("0f")) {
      out.value = static_cast<int64_t>(std::stoul(std::string(s.substr(2)), nullptr, 16));
    } else if (s == "shared_memory" || s == "_") {
      out.value = 0;
    } else if (s[0] == 'p') {
      out.kind = Operand::Map;
      out.value = std::stol(std::string(s.substr(1)));
    } else {
      out.value = std::stol(std::string(s));
    }
    return out;
  }

  std::map<std::string, int> registers_;
};

// Where a warp stands that waits for others: a barrier's kind, its number or the group's, and how many threads come there if that is said.
struct Stopped {
  Instruction::Stop kind = Instruction::None;
  unsigned block = 0, number = 0, threads = 0;
  bool operator==(const Stopped&) const = default;
};

// One warp. It goes on until it waits for others, or for a barrier in memory.
class Warp {
 public:
  Warp(const Program& p, Machine machine)
      : program_(p), registers_(static_cast<size_t>(p.registers)), machine_(std::move(machine)) {
    machine_.registers = &registers_;
  }
  bool done() const { return stopped_.kind == Instruction::None && next() == program_.code.size(); }
  const Stopped& stopped() const { return stopped_; }
  bool waits() const { return machine_.waits; }
  unsigned block() const { return machine_.block; }
  Known& known() { return machine_.clocks; }
  void go_on() {
    bool of_group = stopped_.kind == Instruction::OfGroup;
    stopped_ = {};
    if (of_group) return;
    ++machine_.of_warp;
    ++machine_.clocks.seen[machine_.warp];
  }

  void run() {
    machine_.registers = &registers_;
    machine_.waits = false;
    for (size_t pc; (pc = next()) < program_.code.size();) {
      const Instruction& i = program_.code[pc];
      uint32_t lanes = lanes_at(pc), active = lanes;
      if (i.guard >= 0)
        each(lanes, [&](int l) {
          if (!registers_[i.guard][l]) active &= ~(1u << l);
        });
      if (!i.branch) i.does(machine_, i, active);
      go_from(pc, lanes, i.branch ? active : 0, i.target);
      if (machine_.waits) return;
      if (i.stop == Instruction::None) continue;
      if (lanes != kAll) fail("a barrier for a part of a warp");
      stopped_ = stop_at(i);
      return;
    }
  }

 private:
  Stopped stop_at(const Instruction& i) const {
    auto number = [&](size_t n) { return n < i.operands.size() ? u(machine_.get(i.operands[n], 0)) : 0; };
    if (i.stop == Instruction::OfCluster) return {i.stop};
    if (i.stop == Instruction::OfGroup) return {i.stop, block(), machine_.first_thread / (4 * kLanes), 4 * kLanes};
    return {i.stop, block(), number(0), number(1)};
  }
  size_t next() const { return together_ ? *together_ : *std::min_element(at_.begin(), at_.end()); }
  uint32_t lanes_at(size_t pc) const {
    if (together_) return *together_ == pc ? kAll : 0;
    uint32_t out = 0;
    for (int l = 0; l < kLanes; ++l) out |= uint32_t{at_[l] == pc} << l;
    return out;
  }
  void go_from(size_t pc, uint32_t lanes, uint32_t jump, size_t target) {
    if (together_ && (jump == 0 || jump == kAll)) {
      together_ = jump ? target : pc + 1;
      return;
    }
    if (together_) at_.fill(*together_);
    each(lanes, [&](int l) { at_[l] = jump >> l & 1 ? target : pc + 1; });
    together_.reset();
    if (std::all_of(at_.begin(), at_.end(), [&](size_t at) { return at == at_[0]; })) together_ = at_[0];
  }
  const Program& program_;
  std::vector<std::array<uint64_t, kLanes>> registers_;
  std::optional<size_t> together_ = 0;  // where all lanes are
  std::array<size_t, kLanes> at_{};     // where each is, if not together
  Machine machine_;
  Stopped stopped_;
};

// Those that wait together go on where all have come.
bool pass(std::vector<Warp>& warps, const Stopped& where) {
  std::vector<Warp*> there;
  size_t missing = 0;
  for (Warp& w : warps) {
    bool one_of_them = where.kind == Instruction::OfCluster || w.block() == where.block;
    if (w.stopped() == where)
      there.push_back(&w);
    else
      missing += one_of_them && !w.done();
  }
  if (where.threads ? there.size() < where.threads / kLanes : missing > 0) return false;
  Known together;
  if (where.kind != Instruction::OfGroup)
    for (Warp* w : there) together.learn(w->known());
  for (Warp* w : there) {
    w->known().learn(together);
    w->go_on();
  }
  return true;
}

void run_together(std::vector<Warp>& warps, const uint64_t& events) {
  for (bool more = true; more;) {
    more = false;
    uint64_t before = events;
    bool goes_on = false;
    for (Warp& w : warps) {
      if (w.done() || w.stopped().kind != Instruction::None) continue;
      w.run();
      goes_on = goes_on || !w.waits();
    }
    for (Warp& w : warps) {
      if (Stopped where = w.stopped(); where.kind != Instruction::None) goes_on = pass(warps, where) || goes_on;
      more = more || !w.done();
    }
    if (more && !goes_on && events == before) fail("no warp can go on: all wait at barriers");
  }
}

}  // namespace

std::shared_ptr<const Program> parse_ptx(const std::string& text) { return Parser().parse(text); }

void run(const Program& program, unsigned blocks, unsigned threads, size_t given, void* const* parameters) {
  if (blocks % program.cluster) fail(std::to_string(blocks) + " blocks are no clusters");
  for (unsigned b = 0; b < blocks; b += program.cluster) {
    size_t bytes = program.shared + given;
    // NaN, until something is there.
    std::vector<Shared> shared(program.cluster,
                               {std::vector<std::byte>(bytes, std::byte{0xff}), std::vector<Uses>((bytes + 3) / 4)});
    uint64_t events = 0;
    std::vector<Warp> warps;
    unsigned all = program.cluster * ((threads + kLanes - 1) / kLanes);
    const Known begin{std::vector<unsigned>(all), std::vector<unsigned>(all)};
    for (unsigned rank = 0; rank < program.cluster; ++rank)
      for (unsigned t = 0; t < threads; t += kLanes) {
        auto number = static_cast<unsigned>(warps.size());
        Machine machine{nullptr, &shared, &events, b + rank, t, number, parameters, begin};
        machine.clocks.seen[number] = 1;
        warps.emplace_back(program, std::move(machine));
      }
    run_together(warps, events);
    for (const Shared& s : shared)
      if (!s.being_read.empty()) fail("a block ends while a copy reads its shared memory");
  }
}

}  // namespace brasa::fakes
