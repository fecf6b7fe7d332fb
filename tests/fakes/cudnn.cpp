#include <brasa/elements.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "control.h"
#include "stream.h"

// cuDNN as far as src/runtime/cuda/cudnn.cpp uses it: graphs of one convolution. Its first engine has tensor cores, which round float32, its second has none.
namespace {

using brasa::runtime::emu::NativeStream;

brasa::fakes::Log log_of_calls;

constexpr int kNotSupported = 3000, kInvalid = 2000, kNotFinished = 2003;
constexpr int kHalf = 2, kBrain = 9;  // else float32
constexpr int kPlan = 5, kForward = 10, kByWeight = 11, kByImage = 12, kGraph = 15;
constexpr int kPart = 15;             // an attribute's type
constexpr int64_t kWorkspace = 4096;  // that each plan wants
constexpr int kTensorCores = 0;       // a note

// A description: its attributes as they were given; of other descriptions what they were then.
struct Description {
  int kind = 0;
  bool finished = false;
  int64_t engine = 0;  // of engines, choices, plans
  std::map<int, std::vector<std::byte>> given;
  std::map<int, std::shared_ptr<Description>> parts;

  template <class T>
  std::vector<T> all(int attribute) const {
    auto it = given.find(attribute);
    std::vector<T> out(it == given.end() ? 0 : it->second.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), it->second.data(), out.size() * sizeof(T));
    return out;
  }
  template <class T>
  T one(int attribute) const {
    std::vector<T> v = all<T>(attribute);
    return v.size() == 1 ? v[0] : T{};
  }
  const Description* part(int attribute) const {
    auto it = parts.find(attribute);
    return it == parts.end() ? nullptr : it->second.get();
  }
};
using Sizes = std::vector<int64_t>;

struct Tensor {
  int dtype = 0;
  int64_t id = 0;
  Sizes sizes, strides;
};
Tensor tensor_of(const Description& d) {
  return {d.one<int>(901), d.one<int64_t>(906), d.all<int64_t>(902), d.all<int64_t>(903)};
}
// What lies as [n, places…, channels], without gaps.
bool channels_last(const Tensor& t) {
  Sizes order(t.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  int64_t expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    auto d = static_cast<size_t>(order[i]);
    if (t.strides.at(d) != expected) return false;
    expected *= t.sizes[d];
  }
  return true;
}

struct Convolution {
  int kind = 0;
  Tensor image, weight, result;
  Sizes stride, dilation, padding;
  std::vector<void*> data;  // of image, weight and result
};
Convolution convolution_of(const Description& operation) {
  int first = operation.kind == kForward ? 700 : operation.kind == kByImage ? 706 : 712;
  const Description& how = *operation.part(first + 2);
  return {operation.kind,
          tensor_of(*operation.part(first + 4)),
          tensor_of(*operation.part(first + 3)),
          tensor_of(*operation.part(first + 5)),
          how.all<int64_t>(103),
          how.all<int64_t>(102),
          how.all<int64_t>(105),
          {}};
}
// Two or three places, sizes that fit, all tensors of one dtype.
bool supported(const Convolution& c) {
  size_t rank = c.image.sizes.size();
  if (rank < 4 || rank > 5 || c.weight.sizes.size() != rank || c.result.sizes.size() != rank) return false;
  if (c.stride.size() != rank - 2 || c.dilation.size() != rank - 2 || c.padding.size() != rank - 2) return false;
  for (const Tensor* t : {&c.image, &c.weight, &c.result})
    if (t->dtype != c.image.dtype || !channels_last(*t)) return false;
  int64_t channels = c.weight.sizes[1], outputs = c.weight.sizes[0];
  if (c.image.sizes[1] % channels != 0 || outputs % (c.image.sizes[1] / channels) != 0) return false;
  if (c.result.sizes[0] != c.image.sizes[0] || c.result.sizes[1] != outputs) return false;
  for (size_t d = 0; d + 2 < rank; ++d) {
    int64_t reach = (c.weight.sizes[d + 2] - 1) * c.dilation[d] + 1;
    if (c.result.sizes[d + 2] != (c.image.sizes[d + 2] + 2 * c.padding[d] - reach) / c.stride[d] + 1) return false;
  }
  return true;
}

double load(const void* p, int dtype, int64_t i) {
  auto at = [&](auto zero) {
    std::memcpy(&zero, static_cast<const char*>(p) + i * static_cast<int64_t>(sizeof zero), sizeof zero);
    return static_cast<double>(zero);
  };
  return dtype == kHalf ? at(brasa::Half()) : dtype == kBrain ? at(brasa::BFloat16()) : at(float{});
}
void store(void* p, int dtype, int64_t i, double v) {
  auto at = [&](auto x) { std::memcpy(static_cast<char*>(p) + i * static_cast<int64_t>(sizeof x), &x, sizeof x); };
  auto narrow = static_cast<float>(v);
  dtype == kHalf ? at(brasa::Half(narrow)) : dtype == kBrain ? at(brasa::BFloat16(narrow)) : at(narrow);
}

int64_t elements(const Tensor& t) {
  return std::accumulate(t.sizes.begin(), t.sizes.end(), int64_t{1}, std::multiplies<>());
}
int64_t place(const Tensor& t, const Sizes& at) {
  return std::inner_product(at.begin(), at.end(), t.strides.begin(), int64_t{0});
}
bool next(Sizes& at, const Sizes& sizes) {
  for (size_t d = at.size(); d-- > 0;) {
    if (++at[d] < sizes[d]) return true;
    at[d] = 0;
  }
  return false;
}

// Every triple of elements that belong together, one after the other.
void compute(const Convolution& c) {
  const Tensor& to = c.kind == kForward ? c.result : c.kind == kByImage ? c.image : c.weight;
  std::vector<double> sums(static_cast<size_t>(elements(to)));
  int64_t channels = c.weight.sizes[1], per_group = c.weight.sizes[0] / (c.image.sizes[1] / channels);
  Sizes r(c.result.sizes.size());
  do {
    Sizes w(c.weight.sizes.size());
    do {
      if (w[0] != 0) break;
      w[0] = r[1];
      Sizes x = {r[0], r[1] / per_group * channels + w[1]};
      bool inside = true;
      for (size_t d = 2; d < r.size(); ++d) {
        x.push_back(r[d] * c.stride[d - 2] + w[d] * c.dilation[d - 2] - c.padding[d - 2]);
        inside = inside && x[d] >= 0 && x[d] < c.image.sizes[d];
      }
      if (inside) {
        int64_t pi = place(c.image, x), pw = place(c.weight, w), pr = place(c.result, r);
        double vi = load(c.data[0], c.image.dtype, pi), vw = load(c.data[1], c.image.dtype, pw),
               vr = load(c.data[2], c.image.dtype, pr);
        if (c.kind == kForward) sums[static_cast<size_t>(pr)] += vi * vw;
        if (c.kind == kByImage) sums[static_cast<size_t>(pi)] += vr * vw;
        if (c.kind == kByWeight) sums[static_cast<size_t>(pw)] += vr * vi;
      }
      w[0] = 0;
    } while (next(w, c.weight.sizes));
  } while (next(r, c.result.sizes));
  void* data = c.data[c.kind == kForward ? 2 : c.kind == kByImage ? 0 : 1];
  for (size_t i = 0; i < sums.size(); ++i) store(data, to.dtype, static_cast<int64_t>(i), sums[i]);
}

// The handle: which stream it works for.
struct Library {
  NativeStream* stream = nullptr;
};

}  // namespace

#define BRASA_FAKE extern "C" __attribute__((visibility("default")))
#define BRASA_NOTE \
  if (int status = log_of_calls.note(__func__)) return status

BRASA_FAKE brasa::fakes::Control* brasa_fake() { return &log_of_calls; }

BRASA_FAKE size_t cudnnGetVersion() { return 91900; }
BRASA_FAKE int cudnnCreate(Library** handle) {
  BRASA_NOTE;
  *handle = new Library;
  return 0;
}
BRASA_FAKE int cudnnDestroy(Library* handle) {
  BRASA_NOTE;
  delete handle;
  return 0;
}
BRASA_FAKE int cudnnSetStream(Library* handle, void* stream) {
  BRASA_NOTE;
  handle->stream = brasa::fakes::stream_of(stream);
  return 0;
}

BRASA_FAKE int cudnnBackendCreateDescriptor(int kind, Description** out) {
  BRASA_NOTE;
  *out = new Description;
  (*out)->kind = kind;
  return 0;
}
BRASA_FAKE int cudnnBackendDestroyDescriptor(Description* d) {
  log_of_calls.note(__func__);
  delete d;
  return 0;
}
BRASA_FAKE int cudnnBackendSetAttribute(Description* d, int attribute, int type, int64_t count, const void* values) {
  BRASA_NOTE;
  if (d->finished) return kInvalid;
  if (type == kPart) {
    const Description* part = *static_cast<Description* const*>(values);
    if (count != 1) return kInvalid;
    if (!part->finished) return kNotFinished;
    d->parts[attribute] = std::make_shared<Description>(*part);
    d->engine = part->engine;
    return 0;
  }
  constexpr int64_t kBytes[] = {8, 4, 1, 8, 4, 8, 8, 4, 4};
  if (type < 0 || type > 8) return kInvalid;
  const auto* bytes = static_cast<const std::byte*>(values);
  d->given[attribute].assign(bytes, bytes + count * kBytes[type]);
  return 0;
}
BRASA_FAKE int cudnnBackendFinalize(Description* d) {
  BRASA_NOTE;
  if (d->kind == kPlan)
    if (int status = log_of_calls.note("plan")) return status;
  if (d->kind == kGraph && !supported(convolution_of(*d->part(801)))) return kNotSupported;
  d->finished = true;
  return 0;
}
BRASA_FAKE int cudnnBackendGetAttribute(Description* d, int attribute, int, int64_t most, int64_t* count, void* out) {
  BRASA_NOTE;
  if (!d->finished) return kNotFinished;
  switch (attribute) {
    case 202:
      for (*count = 0; *count < std::min<int64_t>(most, 2); ++*count) {
        Description& choice = *static_cast<Description**>(out)[*count];
        choice.engine = *count;
        choice.parts[kGraph] = d->parts.at(201);
        choice.finished = true;
      }
      return 0;
    case 300: {
      Description& engine = **static_cast<Description**>(out);
      engine.engine = d->engine;
      engine.finished = true;
      *count = 1;
      return 0;
    }
    case 1303:
      *count = d->engine == 0 ? 1 : 0;
      if (*count) *static_cast<int*>(out) = kTensorCores;
      return 0;
    case 402:
      *count = 1;
      *static_cast<int64_t*>(out) = kWorkspace;
      return 0;
    default: return kInvalid;
  }
}

BRASA_FAKE int cudnnBackendExecute(Library* handle, Description* plan, Description* pointers) {
  BRASA_NOTE;
  if (!plan->finished || !pointers->finished || !handle->stream) return kNotFinished;
  if (!pointers->one<void*>(1003)) return kInvalid;
  if (plan->engine == 0) log_of_calls.note("rounding engine");
  Convolution c = convolution_of(*plan->part(401)->part(kGraph)->part(801));
  log_of_calls.note(c.kind == kForward ? "forward" : c.kind == kByImage ? "by image" : "by weight");
  if (!handle->stream->computes()) return 0;
  std::vector<int64_t> ids = pointers->all<int64_t>(1000);
  std::vector<void*> data = pointers->all<void*>(1001);
  for (const Tensor* t : {&c.image, &c.weight, &c.result}) {
    size_t at = std::find(ids.begin(), ids.end(), t->id) - ids.begin();
    if (at >= data.size()) return kInvalid;
    c.data.push_back(handle->stream->reach(data[at]));
  }
  handle->stream->add([c] { compute(c); });
  return 0;
}
