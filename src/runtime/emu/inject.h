#pragma once

#include <cstddef>
#include <cstdint>

#include <brasa/dtype.h>

// What can go wrong with an emulated GPU, at will. `index`: the device's.
namespace brasa::runtime::emu {

/// As much memory as it seems to have from now on; what is taken stays. 0: as much as it has.
void limit_memory(int index, size_t bytes);
/// The n-th launch from now on fails, 1 the next one; 0: none does.
void fail_launch(int index, int64_t n);
/// Everything fails until it comes back; work that was under way is lost.
void lose(int index);
void come_back(int index);
/// A dtype that it has not.
void lack(int index, DType dtype, bool lacks = true);
/// Another lot for the order in which streams run.
void seed(int index, uint64_t seed);
/// How often the host has waited for it.
int64_t waits(int index);
/// Tasks that nobody has waited for.
size_t waiting(int index);

}  // namespace brasa::runtime::emu
