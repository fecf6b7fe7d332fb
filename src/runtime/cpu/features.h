#pragma once

#include <string>
#include <string_view>

namespace brasa::runtime::cpu {

/// This machine as a target description: "x86-64+avx512" where AVX-512 F, BW, DQ, VL, CD are there, "x86-64+avx512+vnni" where VNNI is there
/// besides, "x86-64+avx512+bf16" where BF16, too, is and is faster than float32 (AMD's processors), "x86-64+avx512+bf16+amx" where there are
/// tiles besides and the kernel lets this process use them, "x86-64+avx2" (with FMA, F16C, BMI), "x86-64".
/// BRASA_CPU_TARGET, a description of what this machine runs, takes its place.
const std::string& host_target();
/// The same without BRASA_CPU_TARGET.
std::string_view machine_target();
/// Whether this machine can run code for the description.
bool supports(std::string_view target);

}  // namespace brasa::runtime::cpu
