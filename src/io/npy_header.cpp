#include "io/npy_header.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "support/error.h"

// The format: NumPy's numpy/lib/_format_impl.py. A magic text, the version, the header's length, and a dictionary as Python writes one.
namespace brasa::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostDimensions = 64;  // NumPy's

struct Named {
  DType dtype;
  std::string_view format;  // without the order of bytes
};
constexpr Named kDTypesOfNumPy[] = {
    {DType::Bool, "b1"},    {DType::UInt8, "u1"},   {DType::UInt64, "u8"},    {DType::Int8, "i1"},
    {DType::Int16, "i2"},   {DType::Int32, "i4"},   {DType::Int64, "i8"},     {DType::Float16, "f2"},
    {DType::Float32, "f4"}, {DType::Float64, "f8"}, {DType::Complex64, "c8"}, {DType::Complex128, "c16"},
};

struct Other {
  char letter;
  std::string_view name;
};
constexpr Other kOthers[] = {
    {'O', "object: pickles, which are programs and never read"},
    {'S', "bytes"},
    {'a', "bytes"},
    {'U', "str"},
    {'V', "void: bytes without a meaning"},
    {'M', "datetime64"},
    {'m', "timedelta64"},
};
constexpr Other kNumbers[] = {{'u', "uint"}, {'i', "int"}, {'f', "float"}, {'c', "complex"}};

// "<f4" and the like; '|' stands for no order, which is for single bytes only.
void read_format(NpyHeader& h) {
  for (const Named& n : kDTypesOfNumPy) {
    if (h.format.size() != n.format.size() + 1 || !h.format.ends_with(n.format)) continue;
    bool wide = size_of(n.dtype) > 1;
    char order = h.format[0];
    if (order == '<' || order == '>' || (order == '|' && !wide)) h.dtype = n.dtype;
    h.swapped = wide && order == '>';
  }
}

// A dictionary of Python literals with the three keys that a header has.
class Reader {
 public:
  Reader(std::string_view text, const std::string& source) : rest_(text), source_(source) {}

  void read(NpyHeader& h) {
    expect('{');
    bool format = false, order = false, shape = false;
    while (!take('}')) {
      std::string_view key = string();
      bool* seen = key == "descr" ? &format : key == "fortran_order" ? &order : key == "shape" ? &shape : nullptr;
      BRASA_CHECK(seen && !*seen, source_, ": the header has the key '", excerpt(key), "'", seen ? " twice" : "",
                  ", expected descr, fortran_order and shape");
      *seen = true;
      expect(':');
      if (seen == &format)
        h.format = excerpt(next() == '\'' || next() == '"' ? string() : nested());
      else if (seen == &order)
        h.fortran_order = boolean();
      else
        h.shape = sizes();
      if (take(',')) continue;
      expect('}');
      break;
    }
    BRASA_CHECK(format && order && shape, source_, ": the header lacks one of descr, fortran_order and shape");
    next();
    BRASA_CHECK(rest_.empty(), source_, ": the header goes on behind its dictionary: ", excerpt(rest_));
  }

 private:
  static std::string excerpt(std::string_view text) {
    constexpr size_t kMost = 100;
    return text.size() <= kMost ? std::string(text) : str(text.substr(0, kMost), "…");
  }
  [[noreturn]] void fail_at(std::string_view expected) const {
    fail(str(source_, ": the header has ", rest_.empty() ? "its end" : str("'", excerpt(rest_.substr(0, 20)), "'"),
             " where ", expected, " is expected"));
  }

  // The next character that is no space; NUL at the end.
  char next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool take(char c) {
    if (rest_.empty() || next() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    next();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail_at(str("'", c, "'"));
  }
  std::string_view taken(size_t size) {
    std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

  std::string_view string() {
    char quote = next();
    size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : rest_.npos;
    if (end == rest_.npos) fail_at("a string");
    return taken(end + 1).substr(1, end - 1);
  }
  bool boolean() {
    bool yes = take("True");
    if (!yes && !take("False")) fail_at("True or False");
    return yes;
  }
  // A list, tuple or dictionary, to its end.
  std::string_view nested() {
    constexpr std::string_view kOpen = "[({", kClose = "])}";
    if (kOpen.find(next()) == kOpen.npos) fail_at("a dtype");
    size_t end = 0;
    for (size_t depth = 0; end < rest_.size(); ++end) {
      char c = rest_[end];
      if (c == '\'' || c == '"') {
        end = rest_.find(c, end + 1);
        if (end == rest_.npos) break;
      }
      depth += kOpen.find(c) != kOpen.npos;
      if (kClose.find(c) != kClose.npos && --depth == 0) return taken(end + 1);
    }
    fail_at("a dtype");
  }
  std::vector<int64_t> sizes() {
    std::vector<int64_t> out;
    expect('(');
    bool comma = false;
    while (!take(')')) {
      if (!out.empty() && !comma) fail_at("',' or ')'");
      out.push_back(size());
      BRASA_CHECK(out.size() <= kMostDimensions, source_, ": the header's shape has more than ", kMostDimensions,
                  " dimensions");
      comma = take(',');
    }
    BRASA_CHECK(out.size() != 1 || comma, source_, ": the header's shape is the number ", out[0], ", not a tuple");
    return out;
  }
  // Files by Python 2 have an L behind it.
  int64_t size() {
    next();
    int64_t n = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
    bool zeros = end - rest_.data() > 1 && rest_[0] == '0';
    if (error != std::errc() || n < 0 || rest_[0] == '-' || zeros) fail_at("a size from 0 to 2^63 - 1");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    if (!rest_.empty() && rest_[0] == 'L') rest_.remove_prefix(1);
    return n;
  }

  std::string_view rest_;
  const std::string& source_;
};

}  // namespace

bool looks_like_npy(std::span<const std::byte> bytes) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(kMagic);
}

NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& source) {
  BRASA_CHECK(looks_like_npy(bytes) && bytes.size() >= kMagic.size() + 2, source, ": no npy file: it has ",
              bytes.size(), " bytes and does not begin with NumPy's mark");
  auto byte = [&](size_t at) { return static_cast<uint32_t>(bytes[at]); };
  uint32_t major = byte(kMagic.size()), minor = byte(kMagic.size() + 1);
  BRASA_CHECK(major >= 1 && major <= 3 && minor == 0, source, ": version ", major, ".", minor,
              " of the npy format; 1.0, 2.0 and 3.0 are read");
  size_t begin = kMagic.size() + 2, width = major == 1 ? 2 : 4, length = 0;
  BRASA_CHECK(bytes.size() - begin >= width, source, ": the file ends in its header");
  for (size_t i = width; i-- > 0;) length = length << 8 | byte(begin + i);
  begin += width;
  BRASA_CHECK(length <= bytes.size() - begin, source, ": the header's length ", length, " does not fit a file of ",
              bytes.size(), " bytes");
  NpyHeader out;
  Reader({reinterpret_cast<const char*>(bytes.data()) + begin, length}, source).read(out);
  read_format(out);
  out.data = bytes.subspan(begin + length);
  return out;
}

std::string npy_header(DType dtype, std::span<const int64_t> shape, bool fortran_order, const std::string& where) {
  const auto* named = std::find_if(std::begin(kDTypesOfNumPy), std::end(kDTypesOfNumPy),
                                   [&](const Named& n) { return n.dtype == dtype; });
  BRASA_CHECK(named != std::end(kDTypesOfNumPy), where, ": NumPy has no dtype ", name(dtype),
              "; convert the tensor first, or save it as safetensors");
  BRASA_CHECK(shape.size() <= kMostDimensions, where, ": the tensor has ", shape.size(), " dimensions, NumPy's arrays ",
              kMostDimensions, " at most");
  std::string sizes = "(";
  for (size_t d = 0; d < shape.size(); ++d) sizes += str(d ? ", " : "", shape[d]);
  std::string text = str("{'descr': '", size_of(dtype) > 1 ? '<' : '|', named->format,
                         "', 'fortran_order': ", fortran_order ? "True" : "False", ", 'shape': ", sizes,
                         shape.size() == 1 ? ",)" : ")", ", }");
  // NumPy keeps room for the size along which a file can grow, then fills up to a multiple of 64.
  constexpr size_t kMostDigits = 21, kAlignment = 64, kPrefix = kMagic.size() + 4;
  if (!shape.empty())
    text.append(kMostDigits - std::to_string(fortran_order ? shape.back() : shape.front()).size(), ' ');
  text.append(kAlignment - (kPrefix + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  std::string out(kMagic);
  out += '\1';
  out += '\0';
  out += static_cast<char>(text.size() & 0xff);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

std::string name_of_npy_format(const std::string& format) {
  if (format.find_first_of("[({") == 0) return "structured";
  bool has_order = format.find_first_of("<>|=") == 0;
  std::string_view kind = std::string_view(format).substr(has_order ? 1 : 0);
  if (kind.empty()) return "unknown";
  for (const Other& o : kOthers)
    if (kind[0] == o.letter) return std::string(o.name);
  int bytes = 0;
  auto [end, error] = std::from_chars(kind.data() + 1, kind.data() + kind.size(), bytes);
  for (const Other& n : kNumbers)
    if (kind[0] == n.letter && error == std::errc() && end == kind.data() + kind.size() && bytes > 0 && bytes <= 32)
      return str(n.name, 8 * bytes);
  return "unknown";
}

}  // namespace brasa::io
