#pragma once

#include <atomic>
#include <cstdint>

namespace brasa {

/// Goes up when something changes that bodies of compiled functions read without a recorder seeing it: a module's training flag, a learning
/// rate by its schedule.
inline std::atomic<uint64_t> program_state{0};

}  // namespace brasa
