#include "loops/kernel.h"

// What finding an element's place costs inside of loops.
namespace brasa::compiler::test {
namespace {

// Sums over windows of a kernel's 4 x 4 places, as the gradient by its weights has them. Where lines and planes are powers of two, the terms of a
// place share no bits.
TEST(Addresses, TermsThatShareNoBitsLeaveLoopsToo) {
  auto bytes = [](int64_t side) {
    constexpr int64_t kRows = 6, kTiles = 8, kLanes = 16, kSums = 7;
    Kernel k;
    Value image = k.f32(3 * side * side), factors = k.f32(kSums * kSums * kLanes), out = k.f32(kTiles * kRows * kLanes);
    Expr tile = k.b.loop("parallel", kTiles), u = k.b.loop("unroll", kRows), lane = k.b.loop("vector", kLanes, 8, 2),
         y = k.b.loop("serial", kSums), x = k.b.loop("serial", kSums, 1, kSums), row = tile * kRows + u;
    Expr place = floordiv(row, 16) * side * side + mod(floordiv(row, 4), 4) * side + mod(row, 4) + y * 2 * side + x * 2;
    Value item =
        k.b.op(ops::ScalarOp::Mul, {k.b.load(image, place), k.b.load(factors, (y * kSums + x) * kLanes + lane)});
    k.b.store(out, row * kLanes + lane, k.b.reduce(item, {y, x}, "add"));
    std::string text = ir::print(k.graph);
    return static_cast<double>(compile_kernel_texts({&text, 1}, "x86-64+avx2").code.size());
  };
  EXPECT_LT(bytes(16), 1.1 * bytes(17));  // 1.24 with what stays inside
}

}  // namespace
}  // namespace brasa::compiler::test
