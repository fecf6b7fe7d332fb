#pragma once

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <brasa/brasa.h>
#include <brasa/safetensors.h>

namespace brasa::tool {

/// brasa::Error for a file that is not there or no JSON.
nlohmann::json read_json(const std::string& path);
/// What JSON cannot say of a float: "nan", "inf" or "-inf"; brasa::Error for another text.
double special_float(const nlohmann::json& j);
/// A tensor of the file on the default device; pairs of a real dtype become complex numbers where `dtype` is complex.
Tensor tensor_of(const safetensors::Entry& entry, std::optional<DType> dtype);

/// What all that verifies cases of a folder is told.
struct VerifyOptions {
  std::string folder;
  std::string backend = "eager";
  std::string device = get_default_device().str();
  std::vector<std::string> only;
  bool json = false, verbose = false;

  bool wanted(const std::string& name) const {
    return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
  }
};

/// A folder's cases as they are verified: a line each, then how many passed, failed and were skipped. With `json` one line for all.
class Counter {
 public:
  explicit Counter(bool json) : json_(json) {}
  /// `check` gives what is wrong; what it puts into its argument stands behind the case's name. An exception is a failure.
  void run(const std::string& name, const std::function<std::optional<std::string>(std::string& note)>& check);
  void skip(const std::string& name, const std::string& reason);
  /// The exit status: 1 if anything failed.
  int finish();

 private:
  void line(const char* state, const std::string& name, const std::string& text);
  bool json_;
  int passed_ = 0, failed_ = 0, skipped_ = 0;
  nlohmann::json cases_ = nlohmann::json::array();
};

}  // namespace brasa::tool
