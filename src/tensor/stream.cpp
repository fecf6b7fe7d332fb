#include <brasa/stream.h>

#include <brasa/device.h>

#include "support/error.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"

namespace brasa {

namespace {

// What is recorded has to be in its stream before anybody looks at that.
void run_recorded(const char* reason) {
  if (Recorder* recorder = Recorder::current()) recorder->materialise(reason);
}

runtime::Device& device_of(const Stream& s) { return runtime::device_of(s.device()); }

}  // namespace

bool Stream::query() const {
  run_recorded("a question about a stream");
  return device_of(*this).idle(id_);
}
void Stream::synchronize() const {
  run_recorded("waiting for a stream");
  device_of(*this).synchronize(id_);
}
void Stream::wait(const Event& event) const { event.block(*this); }
void Stream::wait_stream(const Stream& other) const {
  Event event;
  event.record(other);
  event.block(*this);
}
void* Stream::native_handle() const {
  run_recorded("a library's call");
  return device_of(*this).native_stream(id_);
}

Stream default_stream(Device device) { return {resolved(device), runtime::kDefaultStream}; }
Stream current_stream(Device device) {
  const runtime::Device& d = runtime::device_of(device);
  return {d.id(), runtime::current_stream(d)};
}
void set_current_stream(const Stream& stream) {
  run_recorded("another stream");
  runtime::set_current_stream(device_of(stream), stream.id());
}
Stream stream_from_pool(Device device, bool urgent) {
  runtime::Device& d = runtime::device_of(device);
  return {d.id(), d.on_host() ? runtime::kDefaultStream : runtime::stream_from_pool(d, urgent)};
}

StreamGuard::StreamGuard(const Stream& stream)
    : original_(brasa::current_stream(Device(stream.device_type()))), current_(original_), covered_(original_) {
  reset_stream(stream);
}
StreamGuard::~StreamGuard() {
  try {
    leave();
  } catch (...) {  // what was recorded failed, and its tensors say so when they are asked for
  }
}
void StreamGuard::leave() {
  run_recorded("another stream");
  runtime::set_current_stream(device_of(covered_), covered_.id());
  set_current_device(original_.device());
}
void StreamGuard::reset_stream(const Stream& stream) {
  BRASA_CHECK(stream.device_type() == original_.device_type(), "StreamGuard: it was made for a stream of a ",
              Device(original_.device_type()).str(), ", and ", stream.device().str(), " is of another kind");
  leave();
  covered_ = brasa::current_stream(stream.device());
  set_current_stream(stream);
  set_current_device(stream.device());
  current_ = stream;
}

struct Event::Impl {
  Device device;
  std::unique_ptr<runtime::TimeMark> mark;
};
Event::Event(bool timed) : timed_(timed) {}
Event::Event(Device device) : timed_(true) { record(current_stream(device)); }
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;

void Event::record(const Stream& stream) {
  run_recorded("an event");
  runtime::Device& d = device_of(stream);
  impl_ = std::make_unique<Impl>(Impl{d.id(), d.mark_time(stream.id(), timed_)});
}
Device Event::device() const {
  BRASA_CHECK(impl_, "an event belongs to a device once it is recorded");
  return impl_->device;
}
void Event::block(const Stream& stream) const {
  run_recorded("an event");
  if (!impl_) return;
  if (impl_->device.type() == stream.device_type())
    impl_->mark->hold(device_of(stream), stream.id());
  else
    impl_->mark->wait();
}
bool Event::query() const { return !impl_ || impl_->mark->reached(); }
void Event::synchronize() const {
  if (impl_) impl_->mark->wait();
}
float Event::elapsed_time(const Event& end) const {
  BRASA_CHECK(impl_ && end.impl_, "elapsed_time: both events must be recorded before");
  BRASA_CHECK(timed_ && end.timed_, "elapsed_time: both events must be made to know their time (enable_timing)");
  BRASA_CHECK(impl_->device == end.impl_->device, "elapsed_time: expected events of one device, got ",
              impl_->device.str(), " and ", end.impl_->device.str());
  return static_cast<float>(end.impl_->mark->since(*impl_->mark));
}

void Tensor::record_stream(const Stream& stream) const {
  const TensorImpl* impl = checked_impl(*this);
  runtime::Device& device = impl->device();
  BRASA_CHECK(device.id() == device_of(stream).id(), "record_stream: the tensor lies on ", device.str(),
              ", the stream is of ", stream.device().str());
  if (device.on_host()) return;
  if (impl->storage->recorder()) impl->materialise("record_stream");
  if (void* p = impl->storage->data()) device.record_stream(p, stream.id());
}

}  // namespace brasa
