#include "tensor/recorder.h"

namespace brasa {

namespace {
thread_local Recorder* current_recorder = nullptr;
}

Recorder* Recorder::current() { return current_recorder; }
Recorder::~Recorder() = default;

Recorder::Scope::Scope(Recorder* recorder) : outer_(current_recorder) { current_recorder = recorder; }
Recorder::Scope::~Scope() { current_recorder = outer_; }

}  // namespace brasa
