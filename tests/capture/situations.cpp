#include "situations.h"

#include <algorithm>
#include <sstream>

#include <brasa/autograd.h>
#include <brasa/device.h>

namespace brasa {

void Seen::add(const Tensor& t) {
  if (!t.defined()) return note("undefined");
  std::ostringstream about;
  about << (t.requires_grad() ? "requires grad" : "no grad") << (t.is_leaf() ? ", leaf" : "");
  entries_.push_back({t.detach().clone(), t.strides().vec(), about.str()});
}

void Seen::attempt(const std::function<void()>& f) {
  try {
    f();
    synchronize(get_default_device());  // a check that failed on a device is an error at the next wait
    note("no error");
  } catch (const Error&) {
    note("an error");
  } catch (const std::exception& e) {
    note(std::string("not a user's error: ") + e.what());
  }
}

bool Seen::mentions(const std::string& text) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& e) { return e.note.find(text) != std::string::npos; });
}

std::string Seen::difference(const Seen& other, double tolerance) const {
  std::ostringstream out;
  if (entries_.size() != other.entries_.size()) {
    auto last = [](const Seen& s) { return s.entries_.empty() ? "" : s.entries_.back().note; };
    out << entries_.size() << " things seen, at last '" << last(*this) << "', and " << other.entries_.size()
        << ", at last '" << last(other) << "'";
    return out.str();
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry &a = entries_[i], &b = other.entries_[i];
    out << "thing " << i << ": ";
    if (a.note != b.note) {
      out << a.note << ", and " << b.note;
      return out.str();
    }
    if (a.value.defined()) {
      if (!(a.value.sizes() == b.value.sizes()) || a.value.scalar_type() != b.value.scalar_type() ||
          !allclose(a.value, b.value, tolerance, tolerance, true)) {
        out << a.value << "\nand\n" << b.value;
        return out.str();
      }
      if (a.strides != b.strides) {
        out << "strides";
        for (int64_t s : a.strides) out << " " << s;
        out << ", and";
        for (int64_t s : b.strides) out << " " << s;
        return out.str();
      }
    }
    out.str("");
  }
  return "";
}

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all = {
      {"automatic", {}},
      {"dynamic", {.dynamic = true}},
      {"static", {.dynamic = false, .recompile_limit = 32}},
      {"beyond the limit", {.dynamic = false, .recompile_limit = 1}},
  };
  return all;
}

Wrap wrap_for(const Mode* mode, const char* backend) {
  if (!mode) return [](TensorFunction f) { return f; };
  CompileOptions options = mode->options;
  options.backend = backend;
  return [options](TensorFunction f) -> TensorFunction { return compile(std::move(f), options); };
}

void expect_as_eager(const std::function<void(const Wrap& compile, Seen& seen)>& program, double tolerance,
                     const char* backend) {
  auto run = [&](const Mode* mode) {
    manual_seed(0);
    Seen seen;
    program(wrap_for(mode, backend), seen);
    return seen;
  };
  Seen eager = run(nullptr);
  for (const Mode& mode : modes()) {
    SCOPED_TRACE(mode.name);
    try {
      std::string difference = eager.difference(run(&mode), tolerance);
      EXPECT_TRUE(difference.empty()) << "eager and compiled: " << difference;
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

}  // namespace brasa
