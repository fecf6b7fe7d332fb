// Threads, and what all the programs must give. The thread sanitizer builds only files that start threads.
#include <cstdlib>
#include <thread>

#include "user_situations.h"

namespace brasa {
namespace {

const UserProgram kThreads[] = {
    {"OneFunctionOfTwoThreads",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({3});
       auto f = compile([&](const Tensors& in) -> Tensors { return {(in[0] * w).sin()}; });
       Tensors got(4);
       for (int round = 0; round < 2; ++round) {
         std::vector<std::thread> threads;
         for (int t = 0; t < 4; ++t)
           threads.emplace_back([&, t] {
             Tensor y = f({plain({t % 2 + 2, 3}) + t})[0];
             got[size_t(t)] = autograd::grad({y.sum()}, {w})[0];
           });
         for (std::thread& t : threads) t.join();
         seen.add(got);
       }
     }},
    {"BackwardOnAnotherThread",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({3});
       auto f = compile([&](const Tensors& in) -> Tensors { return {(in[0] * w).exp(), in[0] + w}; });
       for (int i = 0; i < 3; ++i) {
         w.mutable_grad().reset();
         Tensors out = f({plain({2, 3})});
         std::thread([&] { (out[0].sum() + out[1].square().sum()).backward(); }).join();
         seen.add(w.grad());
       }
     }},
    {"FlagsOfEachThread",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({3});
       auto f = compile([&](const Tensors& in) -> Tensors { return {in[0] * w}; });
       for (int i = 0; i < 3; ++i) {
         Tensor with = f({plain({3})})[0], without;
         std::thread([&] {
           NoGradGuard guard;
           without = f({plain({3})})[0];
         }).join();
         seen.add({with, without});
       }
     }},
    {"AFunctionMadeByAThread",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({2});
       TensorFunction f;
       std::thread([&] {
         f = compile([&](const Tensors& in) -> Tensors { return {in[0] * w}; });
         f({plain({2})});
       }).join();
       for (int64_t n : {1, 2}) {
         w.mutable_grad().reset();
         f({plain({n, 2})})[0].sum().backward();
         seen.add(w.grad());
       }
     }},
};

INSTANTIATE_TEST_SUITE_P(Threads, UserSituation, ::testing::ValuesIn(kThreads), name_of);

}  // namespace

// BRASA_SITUATIONS names another backend.
TEST_P(UserSituation, AsEager) {
  const char* given = std::getenv("BRASA_SITUATIONS");
  expect_as_eager(GetParam().run, 2e-5, given ? given : "interpreter");
}

}  // namespace brasa
