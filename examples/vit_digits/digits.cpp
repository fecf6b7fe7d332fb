#include "digits.h"

#include <zlib.h>

#include <charconv>
#include <memory>
#include <stdexcept>

#include <brasa/brasa.h>

namespace demo {
namespace {

constexpr int kPixels = 64;

struct Row {
  float pixels[kPixels];
  int64_t label;
};

Row parse(const char* line, const std::string& where) {
  Row row;
  const char* end = line;
  while (*end && *end != '\n' && *end != '\r') ++end;
  for (int i = 0; i <= kPixels; ++i) {
    int value = -1;
    auto [next, error] = std::from_chars(line, end, value);
    bool last = i == kPixels;
    if (error != std::errc() || value < 0 || value > (last ? 9 : 16) ||
        (last ? next != end : next == end || *next != ','))
      throw std::runtime_error(where + ": expected 64 pixels of 0 to 16 and a class of 0 to 9");
    if (last)
      row.label = value;
    else
      row.pixels[i] = static_cast<float>(value) / 16;
    line = next + 1;
  }
  return row;
}

}  // namespace

Digits::Digits(const std::string& path, Part part) {
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  char line[1024];
  for (int number = 0; gzgets(file.get(), line, sizeof line); ++number) {
    Row row = parse(line, path + ", line " + std::to_string(number + 1));
    if ((number % 5 == 0) != (part == Part::HeldOut)) continue;
    pixels.insert(pixels.end(), row.pixels, row.pixels + kPixels);
    labels.push_back(row.label);
  }
  int error = Z_OK;
  gzerror(file.get(), &error);
  if (error != Z_OK || labels.empty()) throw std::runtime_error(path + ": it is cut short or no gzip file");
  auto n = static_cast<int64_t>(labels.size());
  images_ = brasa::from_blob(pixels.data(), {n, 1, 8, 8}, brasa::kFloat32).clone();
  labels_ = brasa::from_blob(labels.data(), {n}, brasa::kInt64).clone();
}

brasa::data::Example<> Digits::get(size_t index) {
  auto i = static_cast<int64_t>(index);
  return {images_[i], labels_[i]};
}

}  // namespace demo
