#pragma once

#include <cstdint>
#include <memory>
#include <string>

// Runs a kernel's PTX on the host, as far as src/runtime/cuda writes it: what a lane, a warp's matrix instructions and a block's barriers
// do, one warp after the other.
namespace brasa::fakes {

class Program;
std::shared_ptr<const Program> parse_ptx(const std::string& text);
/// `shared`: bytes that a block has beside what the text says. `parameters`: 8 bytes each. std::runtime_error for what a GPU would not do: an unknown instruction, shared memory that is not there.
void run(const Program& program, unsigned blocks, unsigned threads, size_t shared, void* const* parameters);

}  // namespace brasa::fakes
