#include "export/headers.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "export/embedded.h"
#include "support/error.h"

namespace brasa::exporting {

namespace {

std::string upper(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return s;
}

// From left to right, so that no mark is looked for in what was put in.
using Marks = std::vector<std::pair<std::string, std::string>>;
std::string replaced(std::string_view text, const Marks& marks) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    auto mark =
        std::find_if(marks.begin(), marks.end(), [&](const auto& m) { return text.substr(at).starts_with(m.first); });
    out += mark == marks.end() ? text.substr(at, 1) : std::string_view(mark->second);
    at += mark == marks.end() ? 1 : mark->first.size();
  }
  return out;
}

// The lines of program.h that are for this device.
std::string chosen(const std::string& text, bool gpu) {
  std::istringstream lines(text);
  std::string line, out;
  bool keep = true;
  while (std::getline(lines, line)) {
    if (line == "#ifdef ALONE_CUDA")
      keep = gpu;
    else if (line == "#ifndef ALONE_CUDA")
      keep = !gpu;
    else if (line == "#else")
      keep = !keep;
    else if (line == "#endif")
      keep = true;
    else if (keep)
      out += line + "\n";
  }
  return out;
}

std::string dims_of(const InputType& t) {
  std::string out;
  for (const InputType::Size& s : t.sizes) {
    out += out.empty() ? "" : ", ";
    if (s.fixed())
      out += std::to_string(s.least);
    else if (s.same_input >= 0)
      out += str("as dimension ", s.same_dim, " of input ", s.same_input);
    else
      out += str(s.least, " to ", s.greatest);
  }
  return out;
}

}  // namespace

std::string c_header(const std::string& name, const std::vector<InputType>& inputs,
                     const std::vector<OutputType>& outputs, const std::vector<StateTensor>& state,
                     const Sections& sections) {
  std::string up = upper(name);
  std::string out =
      str("/* ", name, ": a program that Brasa exported. Link its object with the C library; nothing else is needed",
          sections.gpu ? " but NVIDIA's\n   driver where it runs, which it loads itself" : "", ".\n\n");
  for (size_t i = 0; i < inputs.size(); ++i)
    out += str("   input ", i, " '", replaced(inputs[i].name, {{"*/", "* /"}, {"/*", "/ *"}}),
               "': ", brasa::name(inputs[i].dtype), "[", dims_of(inputs[i]), "]\n");
  for (size_t i = 0; i < outputs.size(); ++i)
    out += str("   output ", i, ": ", brasa::name(outputs[i].dtype), ", ", outputs[i].rank, " dimensions\n");
  out += str("*/\n#ifndef ", up, "_H\n#define ", up, "_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n",
             "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n", "#define ", up, "_VERSION 1\n#define ", up, "_INPUTS ",
             inputs.size(), "\n#define ", up, "_OUTPUTS ", outputs.size(), "\n#define ", up, "_STATES ", state.size(),
             "\n#define ", up, "_WEIGHT_BYTES ", sections.weight_bytes, "\n#define ", up, "_STATE_BYTES ",
             sections.state_bytes, "\n");
  if (sections.prepared_bytes)
    out +=
        str("/* That ", name, "_open maps for what is made of weights; only one level's share is written. */\n#define ",
            up, "_PREPARED_BYTES ", sections.prepared_bytes, "\n");
  if (sections.memory_bytes >= 0)
    out += str("/* Work memory of a run on one thread: every size is fixed. */\n#define ", up, "_MEMORY_BYTES ",
               sections.memory_bytes, "\n");
  std::string_view whole = program_header();
  constexpr std::string_view kBegin = "/*BEGIN*/\n", kEnd = "/*END*/";
  size_t begin = whole.find(kBegin) + kBegin.size(), end = whole.find(kEnd);
  BRASA_ASSERT(begin < end && end != whole.npos, "program.h without its marks");
  std::string face(whole.substr(begin, end - begin));
  face = chosen(face, sections.gpu);
  face = replaced(face, {{"alone_", name + "_"}, {"ALONE_", up + "_"}});
  return out + "\n" + face + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

std::string cpp_header(const std::string& name, const std::string& c_header_file, bool gpu) {
  static constexpr std::string_view kText =
      R"(// NAME as a class. A program for each thread, which is neither copied nor moved.
#pragma once

#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

INCLUDE

namespace NAME {

class Program {
 public:
  using Tensor = NAME_tensor;

  // `weights_file`: where the weights lie beside the program.
  explicit Program(const char* weights_file = nullptr) : Program(Closed{}) {
    check(NAME_open(&context_, weights_file));
    context_.state = state_.at_least(*this, NAME_state_bytes());
    check(NAME_reset(&context_));
  }
  ~Program() {
RELEASE    NAME_close(&context_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Fills sizes and bytes of the outputs; where a size depends on values, the greatest that it may be.
  std::array<Tensor, UPPER_OUTPUTS> sizes(const std::array<Tensor, UPPER_INPUTS>& inputs) {
    std::array<Tensor, UPPER_OUTPUTS> outputs{};
    check(NAME_sizes(&context_, inputs.data(), outputs.data()));
    return outputs;
  }
  // Fills the sizes that the outputs have. std::runtime_error with the message. Work memory grows here, where sizes do.
  void run(const std::array<Tensor, UPPER_INPUTS>& inputs, std::array<Tensor, UPPER_OUTPUTS>& outputs) {
    std::size_t bytes = 0;
    check(NAME_memory(&context_, inputs.data(), &bytes));
    context_.memory = memory_.at_least(*this, bytes);
    context_.memory_bytes = memory_.bytes;
    check(NAME_run(&context_, inputs.data(), outputs.data()));
  }
  // The state as a safetensors file.
  void save(const char* file) { check(NAME_save(&context_, file)); }
  void load(const char* file) { check(NAME_load(&context_, file)); }
MORE  // For what else the C functions take.
  NAME_context& context() { return context_; }

 private:
  // Whose destructor closes it, whatever the other constructor meets.
  struct Closed {};
  explicit Program(Closed) {}
  void check(NAME_status status) {
    if (status != UPPER_OK) throw std::runtime_error(context_.message);
  }
  struct Memory {
MEMORY    std::size_t bytes = 0;
  };
  NAME_context context_{};
  Memory memory_, state_;
};

}  // namespace NAME
)";
  // What differs where the memory is a GPU's.
  static constexpr std::string_view kHostMemory = R"(    void* at_least(Program&, std::size_t n) {
      if (bytes < n) data.resize(n);
      bytes = data.size();
      return data.data();
    }
    std::vector<char> data;
)";
  static constexpr std::string_view kGpuMemory = R"(    void* at_least(Program& p, std::size_t n) {
      if (data && bytes >= n) return data;
      release(p);
      p.check(NAME_allocate(&p.context_, bytes = n, &data));
      return data;
    }
    void release(Program& p) {
      NAME_free(&p.context_, data);
      data = nullptr;
    }
    void* data = nullptr;
)";
  static constexpr std::string_view kGpuCalls = R"(  // Waits for what `run` has begun.
  void wait() { check(NAME_wait(&context_)); }
  void upload(void* to, const void* from, std::size_t bytes) { check(NAME_upload(&context_, to, from, bytes)); }
  void download(void* to, const void* from, std::size_t bytes) { check(NAME_download(&context_, to, from, bytes)); }
)";
  static constexpr std::string_view kRelease = "    memory_.release(*this);\n    state_.release(*this);\n";
  const Marks names = {{"NAME", name}, {"UPPER", upper(name)}, {"INCLUDE", str("#include \"", c_header_file, "\"")}};
  return replaced(replaced(kText, {{"MEMORY", std::string(gpu ? kGpuMemory : kHostMemory)},
                                   {"MORE", std::string(gpu ? kGpuCalls : "")},
                                   {"RELEASE", std::string(gpu ? kRelease : "")}}),
                  names);
}

}  // namespace brasa::exporting
