#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "compiler/libraries/fourier/transform.h"
#include "compiler/libraries/lines.h"
#include "compiler/libraries/rows.h"

namespace brasa::compiler {
namespace {

// Tables of the lengths that were used last: they take longer than a short transform.
template <class T>
std::shared_ptr<const fourier::Transform<T>> transform_of(int64_t length) {
  constexpr size_t kKept = 16;
  static std::mutex mutex;
  static std::list<std::pair<int64_t, std::shared_ptr<const fourier::Transform<T>>>> kept;
  {
    std::lock_guard lock(mutex);
    for (auto it = kept.begin(); it != kept.end(); ++it)
      if (it->first == length) {
        kept.splice(kept.begin(), kept, it);
        return it->second;
      }
  }
  auto made = std::make_shared<const fourier::Transform<T>>(length);
  std::lock_guard lock(mutex);
  kept.emplace_front(length, made);
  if (kept.size() > kKept) kept.pop_back();
  return made;
}

template <class T>
void transform_lines(const LibraryCall& call, const Lines& lines) {
  auto signals = [&](const LibraryTensor& re, const LibraryTensor& im) {
    return fourier::Signals<T>{static_cast<T*>(re.data),
                               static_cast<T*>(im.data),
                               lines.inner,
                               {{lines.outer, lines.length * lines.inner}, {lines.inner, 1}}};
  };
  fourier::Signals<T> in = signals(call.inputs[0], call.inputs[1]), out = signals(call.outputs[0], call.outputs[1]);
  transform_of<T>(lines.length)->run({in, out, lines.count(), lines.length, !call.args[3].get<bool>()});
}

void run(const LibraryCall& call) {
  const LibraryTensor& x = call.inputs[0];
  Lines lines(x.sizes, call.integer(2));
  if (lines.length == 0 || lines.count() == 0) return;
  x.dtype == DType::Float32 ? transform_lines<float>(call, lines) : transform_lines<double>(call, lines);
}

}  // namespace

const Implementation kFft = {.library = "host", .name = "fourier", .primitive = "prim::fft", .run = run};

}  // namespace brasa::compiler
