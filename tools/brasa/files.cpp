#include "files.h"

#include <cstdio>
#include <fstream>
#include <limits>

#include <brasa/error.h>

namespace brasa::tool {

nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw Error("cannot open '" + path + "'");
  nlohmann::json j = nlohmann::json::parse(in, nullptr, false);
  if (j.is_discarded()) throw Error("'" + path + "' is not JSON");
  return j;
}

Tensor tensor_of(const safetensors::Entry& entry, std::optional<DType> dtype) {
  if (!entry.dtype) throw Error("tensor '" + entry.name + "' is of dtype " + entry.format + ", which Brasa has not");
  Tensor here = empty(entry.shape, *entry.dtype);
  if (!entry.data.empty()) here.copy_(from_blob(const_cast<std::byte*>(entry.data.data()), entry.shape, *entry.dtype));
  if (dtype && is_complex(*dtype) && !is_complex(*entry.dtype)) return view_as_complex(here);
  return here;
}

void Counter::line(const char* state, const std::string& name, const std::string& text) {
  if (json_)
    cases_.push_back({{"name", name}, {"result", state}, {"text", text}});
  else
    std::printf("%-7s %s%s%s\n", state, name.c_str(), text.empty() ? "" : ": ", text.c_str());
  std::fflush(stdout);
}

void Counter::run(const std::string& name, const std::function<std::optional<std::string>(std::string& note)>& check) {
  std::string note;
  std::optional<std::string> wrong;
  try {
    wrong = check(note);
  } catch (const std::exception& e) {
    wrong = std::string("throws: ") + e.what();
  }
  ++(wrong ? failed_ : passed_);
  line(wrong ? "failed" : "passed", name, wrong.value_or(note));
}

void Counter::skip(const std::string& name, const std::string& reason) {
  ++skipped_;
  line("skipped", name, reason);
}

int Counter::finish() {
  if (json_)
    std::printf("%s\n",
                nlohmann::json({{"passed", passed_}, {"failed", failed_}, {"skipped", skipped_}, {"cases", cases_}})
                    .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                    .c_str());
  else
    std::printf("%d passed, %d failed, %d skipped\n", passed_, failed_, skipped_);
  return failed_ ? 1 : 0;
}

double special_float(const nlohmann::json& j) {
  const auto& s = j.get_ref<const std::string&>();
  if (s != "nan" && s != "inf" && s != "-inf")
    throw Error("expected \"nan\", \"inf\" or \"-inf\" as a float, got " + j.dump());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return s == "nan" ? std::numeric_limits<double>::quiet_NaN() : s == "inf" ? kInfinity : -kInfinity;
}

}  // namespace brasa::tool
