#include "import/types.h"

#include <array>
#include <utility>

#include "support/error.h"

namespace brasa::import {
namespace {

constexpr std::pair<int64_t, std::string_view> kDTypeNames[] = {
    {1, "uint8"},
    {2, "int8"},
    {3, "int16"},
    {4, "int32"},
    {5, "int64"},
    {6, "float16"},
    {7, "float32"},
    {8, "float64"},
    {9, "complex32"},
    {10, "complex64"},
    {11, "complex128"},
    {12, "bool"},
    {13, "bfloat16"},
    {28, "uint16"},
    {29, "float8_e4m3fn"},
    {30, "float8_e5m2"},
    {31, "float8_e4m3fnuz"},
    {32, "float8_e5m2fnuz"},
    {33, "float8_e8m0fnu"},
    {34, "uint32"},
    {35, "uint64"},
};

constexpr std::array<std::pair<int64_t, Layout>, 3> kLayouts{{{1, kSparse}, {2, kSparseCsr}, {7, kStrided}}};

template <class T, size_t N>
T at(const std::array<std::pair<int64_t, T>, N>& table, int64_t number, const char* what, const std::string& source) {
  for (const auto& [n, v] : table)
    if (n == number) return v;
  fail(str(source, ": the ", what, " ", number, " is unknown, or Brasa has it not"));
}

}  // namespace

io::StoredDType stored_dtype_of_archive(int64_t number, const std::string& source) {
  for (const auto& [n, name] : kDTypeNames)
    if (n == number) return *io::stored_dtype(name);
  fail(str(source, ": the dtype ", number, " is unknown"));
}

DType dtype_of_archive(int64_t number, const std::string& source) {
  io::StoredDType t = stored_dtype_of_archive(number, source);
  BRASA_CHECK(name(t.as) == t.name, source, ": it computes with ", t.name, ", which Brasa has not");
  return t.as;
}

int64_t archive_number_of(DType dtype) {
  for (const auto& [n, text] : kDTypeNames)
    if (text == name(dtype)) return n;
  fail(str("archives have no number for dtype ", name(dtype)));
}
int64_t archive_number_of(Layout layout) {
  for (const auto& [n, l] : kLayouts)
    if (l == layout) return n;
  fail("archives have no number for this layout");
}

Layout layout_of_archive(int64_t number, const std::string& source) { return at(kLayouts, number, "layout", source); }

MemoryFormat memory_format_of_archive(int64_t number, const std::string& source) {
  static constexpr std::array<std::pair<int64_t, MemoryFormat>, 4> kFormats{{{1, MemoryFormat::Contiguous},
                                                                             {2, MemoryFormat::ChannelsLast},
                                                                             {3, MemoryFormat::ChannelsLast3d},
                                                                             {4, MemoryFormat::Preserve}}};
  return at(kFormats, number, "memory format", source);
}

}  // namespace brasa::import
