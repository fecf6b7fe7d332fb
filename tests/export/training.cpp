// Training steps that run alone, step for step against the same function in this process.
#include <brasa/export_program.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>

#include <brasa/brasa.h>
#include <brasa/error.h>
#include <brasa/import.h>
#include <brasa/nn.h>
#include <brasa/optim.h>
#include <brasa/safetensors.h>
#include <brasa/serialize.h>

#include "export/loaded.h"

namespace brasa {
namespace {

// Both sides compute in float32, with sums in another order where a kernel is made for other sizes: a few units in the last place a step.
constexpr double kRelative = 1e-5, kAbsolute = 1e-6;

using Optimizer = std::unique_ptr<optim::Optimizer>;

nn::Sequential small_net(double dropout = 0) {
  return nn::Sequential(nn::Linear(6, 16), nn::GELU(), nn::Dropout(dropout), nn::Linear(16, 3));
}

Tensor data(int64_t rows) { return randn({rows, 6}); }
Tensor classes(int64_t rows) { return arange(rows) % 3; }

ExportOptions named(const std::shared_ptr<nn::Module>& module, const optim::Optimizer* optimizer,
                    std::vector<DynamicSize> dynamic = {}) {
  ExportOptions o = alone(std::move(dynamic));
  o.modules = {{"", module}};
  if (optimizer) o.optimizers = {{"optimizer", optimizer}};
  return o;
}

float run_step(Loaded& program, const std::vector<Tensor>& in) {
  std::vector<Tensor> out = {full({}, NAN)};
  EXPECT_EQ(program.run(in, out), ALONE_OK) << program.context.message;
  return out[0].item<float>();
}

// A tensor of the program's state, copied.
Tensor state_of(Loaded& program, const std::string& name) {
  for (int32_t i = 0; i < program.at<decltype(alone_states)>("alone_states")(); ++i) {
    if (name != program.at<decltype(alone_state_name)>("alone_state_name")(i)) continue;
    alone_tensor t{};
    EXPECT_EQ(program.at<decltype(alone_state)>("alone_state")(&program.context, i, &t), ALONE_OK);
    std::vector<int64_t> sizes(t.sizes, t.sizes + program.at<decltype(alone_state_rank)>("alone_state_rank")(i));
    bool whole = std::string("I64") == program.at<decltype(alone_state_dtype)>("alone_state_dtype")(i);
    return from_blob(t.data, sizes, whole ? kInt64 : kFloat32).clone();
  }
  throw std::runtime_error("no " + name);
}

struct Case {
  const char* name;
  std::function<Optimizer(const std::vector<Tensor>&)> make;
  std::vector<std::string> fields;
  bool changing_rate;
};

const Case kCases[] = {
    {"SGD", [](auto& p) { return std::make_unique<optim::SGD>(p, optim::SGDOptions(0.1)); }, {}, true},
    {"momentum",
     [](auto& p) { return std::make_unique<optim::SGD>(p, optim::SGDOptions(0.1).momentum(0.9).nesterov(true)); },
     {"momentum_buffer"},
     true},
    {"Adam",
     [](auto& p) { return std::make_unique<optim::Adam>(p, optim::AdamOptions(1e-2).amsgrad(true)); },
     {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
     true},
    {"AdamW",
     [](auto& p) { return std::make_unique<optim::AdamW>(p, optim::AdamWOptions(1e-2).weight_decay(0.1)); },
     {"step", "exp_avg", "exp_avg_sq"},
     true},
    {"RMSprop",
     [](auto& p) { return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions(1e-2)); },
     {"step", "square_avg"},
     true},
    {"Adadelta",
     [](auto& p) { return std::make_unique<optim::Adadelta>(p, optim::AdadeltaOptions(1.0)); },
     {"step", "square_avg", "acc_delta"},
     false},
    {"Adagrad",
     [](auto& p) { return std::make_unique<optim::Adagrad>(p, optim::AdagradOptions(1e-2).lr_decay(0.1)); },
     {"step", "sum"},
     false},
    {"Adamax",
     [](auto& p) { return std::make_unique<optim::Adamax>(p, optim::AdamaxOptions(1e-2)); },
     {"step", "exp_avg", "exp_inf"},
     true},
    {"NAdam",
     [](auto& p) { return std::make_unique<optim::NAdam>(p, optim::NAdamOptions(1e-2)); },
     {"step", "mu_product", "exp_avg", "exp_avg_sq"},
     true},
    // Six steps: the second moment counts from the sixth.
    {"RAdam",
     [](auto& p) { return std::make_unique<optim::RAdam>(p, optim::RAdamOptions(1e-2)); },
     {"step", "exp_avg", "exp_avg_sq"},
     true},
    {"ASGD",
     [](auto& p) { return std::make_unique<optim::ASGD>(p, optim::ASGDOptions(1e-2).t0(2).lambd(0.1)); },
     {"step", "eta", "mu", "ax"},
     false},
    {"Adafactor",
     [](auto& p) { return std::make_unique<optim::Adafactor>(p, optim::AdafactorOptions(1e-2)); },
     {"step", "row_var", "col_var", "variance"},
     false},
    {"Rprop",
     [](auto& p) { return std::make_unique<optim::Rprop>(p, optim::RpropOptions(1e-2)); },
     {"step", "prev", "step_size"},
     false},
};

TEST(ExportedStep, OptimizersStepByStep) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Folder folder;
    manual_seed(5);
    nn::Sequential net = small_net();
    Optimizer optimizer = c.make(net->parameters());
    auto step = [&](const std::vector<Tensor>& in) {
      if (c.changing_rate) optimizer->param_groups()[0].options().set_lr(in[2]);
      optimizer->zero_grad();
      Tensor loss = nn::functional::cross_entropy(net->forward(in[0]), in[1]);
      loss.backward();
      nn::utils::clip_grad_norm_tensor_(net->parameters(), 0.5);
      optimizer->step();
      return std::vector<Tensor>{loss.detach()};
    };
    std::vector<Tensor> in = {data(8), classes(8)};
    if (c.changing_rate) in.push_back(scalar_tensor(0.5, kFloat32));
    std::vector<Tensor> before;
    for (const Tensor& p : net->parameters()) before.push_back(p.detach().clone());
    ExportedProgram exported = detail::export_function(step, in, named(net.ptr(), optimizer.get()));
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(equal(net->parameters()[i], before[i])) << "the export changed parameter " << i;
      EXPECT_FALSE(net->parameters()[i].grad().defined());
    }
    Loaded program(exported, folder.path);
    for (int k = 0; k < 6; ++k) {
      in[0] = data(8);
      if (c.changing_rate) in[2] = scalar_tensor(0.05 / (k + 1), kFloat32);
      float got = run_step(program, in), want = step(in)[0].item<float>();
      EXPECT_NEAR(got, want, kRelative * want) << k;
    }
    auto expect_state = [&](const std::string& name, const Tensor& want) {
      EXPECT_TRUE(allclose(state_of(program, name), want, kRelative, kAbsolute)) << name;
    };
    for (const auto& p : net->named_parameters()) expect_state(p.key(), p.value());
    serialize::OutputArchive archive;
    optimizer->save(archive);
    size_t fields = 0;
    for (const auto& item : archive.contents().tensors) {
      const std::string& name = item.first;
      bool known = std::any_of(c.fields.begin(), c.fields.end(), [&](auto& f) { return name.ends_with("." + f); });
      if (!name.starts_with("state.") || !known) continue;
      ++fields;
      expect_state("optimizer." + name, item.second);
    }
    if (c.name != std::string("Adafactor")) {
      EXPECT_EQ(fields, c.fields.size() * 4);
    }
    // Dropout that keeps all draws nothing.
    EXPECT_EQ(exported.state_names().size(), 4 + fields);
  }
}

// The masks of eager dropout under the same seed, also where the number of rows, and so of random numbers, differs from run to run.
TEST(ExportedStep, RandomNumbersGoOn) {
  Folder folder;
  manual_seed(11);
  nn::Sequential net = small_net(0.4);
  optim::Adam optimizer(net->parameters(), optim::AdamOptions(1e-2));
  auto step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor noise = x + 0.1 * randn_like(x);
    Tensor loss = nn::functional::cross_entropy(net->forward(noise), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  std::vector<DynamicSize> rows = {{0, 0, 1, 64, "rows"}, {1, 0, 1, 64, "rows"}};
  std::vector<Tensor> example = {data(8), classes(8)};
  manual_seed(77);
  ExportedProgram exported = export_(step, example, named(net.ptr(), &optimizer, rows));
  manual_seed(77);
  uint64_t offset = default_generator().offset();
  Loaded program(exported, folder.path);
  for (int64_t n : {8, 5, 1, 33, 8}) {
    Tensor x = ones({n, 6}) * 0.5, y = classes(n);
    float got = run_step(program, {x, y}), want = step(x, y).item<float>();
    EXPECT_NEAR(got, want, kRelative * want) << n;
  }
  Tensor stream = state_of(program, "rng_state");
  EXPECT_EQ(stream[0].item<int64_t>(), 77);
  EXPECT_EQ(stream[1].item<int64_t>(), static_cast<int64_t>(default_generator().offset()));
  EXPECT_GT(default_generator().offset(), offset);
}

TEST(ExportedStep, ExportLeavesTheGeneratorAlone) {
  manual_seed(4);
  Tensor want = rand({3});
  manual_seed(4);
  ExportedProgram exported = export_([](const Tensor& x) { return dropout(x, 0.5, true) + rand({4}); }, {rand({4})});
  manual_seed(4);
  uint64_t before = default_generator().offset();
  exported = export_([](const Tensor& x) { return dropout(x, 0.5, true) + rand({4}); }, {ones({4})});
  EXPECT_EQ(default_generator().offset(), before);
  EXPECT_TRUE(equal(rand({3}), want));
  EXPECT_EQ(exported.state_names(), std::vector<std::string>{"rng_state"});
}

// Statistics and their count, parameters that are frozen, and a parameter group of its own.
TEST(ExportedStep, BuffersAndFrozenParameters) {
  Folder folder;
  manual_seed(6);
  nn::Sequential net(nn::Linear(6, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Linear(8, 3));
  net[0]->as<nn::Linear>()->weight.set_requires_grad(false);
  std::vector<Tensor> head = net[3]->parameters(), rest = net[1]->parameters();
  optim::SGD optimizer(
      {optim::OptimizerParamGroup(head), optim::OptimizerParamGroup(rest, std::make_unique<optim::SGDOptions>(0.01))},
      optim::SGDOptions(0.1).momentum(0.8));
  auto step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss = nn::functional::cross_entropy(net->forward(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  Loaded program(export_(step, {data(8), classes(8)}, named(net.ptr(), &optimizer)), folder.path);
  for (int k = 0; k < 4; ++k) {
    Tensor x = data(8), y = classes(8);
    float got = run_step(program, {x, y}), want = step(x, y).item<float>();
    EXPECT_NEAR(got, want, kRelative * want) << k;
  }
  EXPECT_EQ(state_of(program, "1.num_batches_tracked").item<int64_t>(), 4);
  for (const auto& b : net->named_buffers())
    EXPECT_TRUE(allclose(state_of(program, b.key()).to(kFloat32), b.value().to(kFloat32), 1e-4, kAbsolute)) << b.key();
  EXPECT_TRUE(equal(state_of(program, "0.weight"), net[0]->as<nn::Linear>()->weight));
}

// Convolutions and pooling; looking up rows, whose gradients are scattered; a recurrent layer.
TEST(ExportedStep, OtherLayers) {
  struct Net : nn::Module {
    Net() {
      register_module("words", words);
      register_module("conv", conv);
      register_module("norm", norm);
      register_module("lstm", lstm);
      register_module("head", head);
    }
    Tensor forward(const Tensor& image, const Tensor& text) {
      Tensor x = max_pool2d(norm(conv(image)).relu(), {2, 2}).flatten(2).mean(2);
      Tensor y = std::get<0>(lstm(words(text))).select(1, -1);
      return head(cat({x, y}, 1));
    }
    nn::Embedding words{nn::EmbeddingOptions(20, 5)};
    nn::Conv2d conv{nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)};
    nn::BatchNorm2d norm{8};
    nn::LSTM lstm{nn::LSTMOptions(5, 6).batch_first(true)};
    nn::Linear head{14, 4};
  };
  Folder folder;
  manual_seed(12);
  auto net = std::make_shared<Net>();
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.05).momentum(0.9));
  auto step = [&](const Tensor& image, const Tensor& text, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss = nn::functional::cross_entropy(net->forward(image, text), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  std::vector<Tensor> in = {randn({4, 3, 16, 16}), randint(0, 20, {4, 7}), classes(4)};
  Loaded program(export_(step, in, named(net, &optimizer)), folder.path);
  for (int k = 0; k < 4; ++k) {
    in[0] = randn({4, 3, 16, 16});
    in[1] = randint(0, 20, {4, 7});
    float got = run_step(program, in), want = step(in[0], in[1], in[2]).item<float>();
    EXPECT_NEAR(got, want, kRelative * want) << k;
  }
  for (const auto& p : net->named_parameters())
    EXPECT_TRUE(allclose(state_of(program, p.key()), p.value(), 1e-4, 1e-5)) << p.key();
}

// Without zero_grad() gradients add up from call to call; they begin at zero.
TEST(ExportedStep, GradientsThatAddUp) {
  Folder folder;
  auto net = nn::Linear(6, 1);
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.01));
  auto step = [&](const Tensor& x) {
    Tensor loss = net(x).pow(2).mean();
    loss.backward();
    optimizer.step();
    return loss;
  };
  ExportedProgram exported = export_(step, {data(4)}, named(net.ptr(), &optimizer));
  EXPECT_EQ(exported.state_names(), (std::vector<std::string>{"weight", "weight.grad", "bias", "bias.grad"}));
  EXPECT_FALSE(net->weight.grad().defined());
  Loaded program(exported, folder.path);
  for (int k = 0; k < 3; ++k) {
    Tensor x = data(4);
    float got = run_step(program, {x}), want = step(x).item<float>();
    EXPECT_NEAR(got, want, kRelative * want) << k;
  }
  EXPECT_TRUE(allclose(state_of(program, "weight.grad"), net->weight.grad(), kRelative, kAbsolute));
}

// An archive with its backward pass inside adds gradients to those of its parameters.
TEST(ExportedStep, ArchivesWithTheirBackwardPass) {
  Folder folder;
  std::string path = std::string(BRASA_TEST_DATA) + "/models/joint_mlp.pt2";
  auto net = io::load_pt2(path), here = io::load_pt2(path);
  std::vector<Tensor> in;
  for (const io::ProgramInput& i : net->input_types()) {
    std::vector<int64_t> sizes;
    for (const auto& s : i.sizes) sizes.push_back(s.example);
    in.push_back(is_floating_point(zeros({}, *i.dtype)) ? randn(sizes) : zeros(sizes, *i.dtype));
  }
  ExportedProgram exported = export_(net, alone());
  EXPECT_EQ(exported.state_names().size(), net->parameters().size());
  Loaded program(exported, folder.path);
  for (int k = 0; k < 2; ++k) {
    float got = run_step(program, in), want = here->forward(in)[0].item<float>();
    EXPECT_NEAR(got, want, kRelative * std::abs(want));
  }
  for (const auto& p : here->named_parameters())
    EXPECT_TRUE(allclose(state_of(program, p.key() + ".grad"), p.value().grad(), kRelative, kAbsolute)) << p.key();
}

// Results may be gradients: of parameters, and of inputs that want them.
TEST(ExportedStep, GradientsAsResults) {
  Folder folder;
  auto net = nn::Linear(6, 2);
  auto f = [&](const Tensor& x) {
    net->zero_grad();
    net(x).exp().sum().backward();
    return std::make_pair(net->weight.grad(), x.grad());
  };
  Tensor x = data(3);
  x.requires_grad_();
  Loaded program(export_(f, {x}, alone()), folder.path);
  std::vector<Tensor> out = {full({2, 6}, NAN), full({3, 6}, NAN)};
  ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
  auto [of_weight, of_x] = f(x);
  EXPECT_TRUE(allclose(out[0], of_weight, kRelative, kAbsolute));
  EXPECT_TRUE(allclose(out[1], of_x, kRelative, kAbsolute));
}

class Stored : public testing::Test {
 protected:
  Stored() {
    manual_seed(9);
    net = small_net(0.2);
    optimizer = std::make_unique<optim::AdamW>(net->parameters(), optim::AdamWOptions(1e-2));
    auto step = [this](const Tensor& x, const Tensor& y) {
      optimizer->zero_grad();
      Tensor loss = nn::functional::cross_entropy(net->forward(x), y);
      loss.backward();
      optimizer->step();
      return loss;
    };
    in = {data(8), classes(8)};
    program = std::make_unique<Loaded>(export_(step, in, named(net.ptr(), optimizer.get())), folder.path);
    file = folder.path / "state.safetensors";
  }
  std::string bytes() {
    std::ifstream f(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(f), {}};
  }
  void write(const std::string& content) { std::ofstream(file, std::ios::binary) << content; }

  Folder folder;
  nn::Sequential net;
  Optimizer optimizer;
  std::vector<Tensor> in;
  std::unique_ptr<Loaded> program;
  fs::path file;
};

TEST_F(Stored, TrainingGoesOnWhereItWasSaved) {
  std::vector<float> losses;
  for (int k = 0; k < 3; ++k) run_step(*program, in);
  ASSERT_EQ(program->save(file), ALONE_OK) << program->context.message;
  for (int k = 0; k < 3; ++k) losses.push_back(run_step(*program, in));
  program->reset();
  EXPECT_NE(run_step(*program, in), losses[0]);
  ASSERT_EQ(program->load(file), ALONE_OK) << program->context.message;
  for (float loss : losses) EXPECT_EQ(run_step(*program, in), loss);
  EXPECT_FALSE(fs::exists(file.string() + ".new"));

  // Other programs read it.
  ASSERT_EQ(program->save(file), ALONE_OK);
  auto stored = safetensors::File::open(file.string());
  EXPECT_EQ(stored.entries().size(), 4u + 4 * 3 + 1);
  nn::Sequential again = small_net(0.2);
  load(again, file.string());
  EXPECT_TRUE(equal(again->named_parameters()["3.weight"], state_of(*program, "3.weight")));
}

// The trained parameters in a program that only evaluates, which lists its module.
TEST_F(Stored, AnotherProgramTakesWhatWasTrained) {
  for (int k = 0; k < 3; ++k) run_step(*program, in);
  ASSERT_EQ(program->save(file), ALONE_OK);
  net->eval();
  fs::create_directory(folder.path / "eval");
  ExportedProgram exported = export_(net, {in[0]}, named(net.ptr(), nullptr));
  Loaded eval(exported, folder.path / "eval");
  std::vector<Tensor> first = {full({8, 3}, NAN)}, trained = {full({8, 3}, NAN)};
  ASSERT_EQ(eval.run({in[0]}, first), ALONE_OK);
  EXPECT_TRUE(allclose(first[0], net->forward(in[0]), kRelative, kAbsolute));
  ASSERT_EQ(eval.load(file), ALONE_OK) << eval.context.message;
  ASSERT_EQ(eval.run({in[0]}, trained), ALONE_OK);
  load(net, file.string());
  EXPECT_TRUE(allclose(trained[0], net->forward(in[0]), kRelative, kAbsolute));
  EXPECT_FALSE(allclose(trained[0], first[0], 1e-3, 1e-3));
}

TEST_F(Stored, FilesThatAreRefusedChangeNothing) {
  ASSERT_EQ(program->save(file), ALONE_OK);
  const std::string good = bytes();
  run_step(*program, in);
  std::vector<char> before = program->state;
  auto refused = [&](const std::string& content, const std::string& why) {
    write(content);
    EXPECT_EQ(program->load(file), ALONE_FILE) << why;
    EXPECT_NE(std::string(program->context.message).find(why), std::string::npos) << program->context.message;
    EXPECT_EQ(program->state, before) << why;
  };
  auto with = [&](const std::string& from, const std::string& to) {
    std::string out = good;
    size_t at = out.find(from);
    EXPECT_NE(at, std::string::npos);
    return out.replace(at, from.size(), to);
  };
  refused("", "cannot be read");
  refused("no", "no safetensors file");
  refused(good.substr(0, good.size() - 1), "no safetensors file");
  refused(good + "x", "no safetensors file");
  refused(with("\"rng_state\"", "\"rng_stata\""), "no tensor 'rng_state'");
  refused(with("[16,6]", "[6,16]"), "tensor '0.weight' has another dtype or other sizes");
  refused(with("\"F32\"", "\"I32\""), "another dtype");
  for (size_t n = 0; n < good.size(); n += 7) {
    write(good.substr(0, n));
    EXPECT_EQ(program->load(file), ALONE_FILE) << n;
  }
  // A header that is wrong anywhere: an error, or a file that means something else, but nothing outside of it is read.
  for (size_t n = 0; n < 1200; ++n) {
    std::string bad = good;
    bad[n] = static_cast<char>(bad[n] ^ (1 << n % 7));
    write(bad);
    program->load(file);
  }
  write(good);
  EXPECT_EQ(program->load(file), ALONE_OK);
  EXPECT_EQ(program->save(folder.path / "none" / "state"), ALONE_FILE);
}

TEST(ExportedStep, AnExecutableKeepsItsState) {
  Folder folder;
  Tensor count = zeros({2});
  auto f = [&](const Tensor& x) { return count.add_(x) * 1; };
  export_(f, {ones({2})}, alone()).write_executable((folder.path / "count").string());
  std::string path = folder.path.string(), run = path + "/count " + path + "/in " + path + "/out";
  save_tensors({{"in0", full({2}, 2.0)}}, path + "/in");
  EXPECT_EQ(std::system((run + " --save " + path + "/kept").c_str()), 0);
  EXPECT_EQ(std::system((run + " --load " + path + "/kept --save " + path + "/kept").c_str()), 0);
  EXPECT_EQ(std::system((run + " --load " + path + "/kept").c_str()), 0);
  EXPECT_NE(std::system((run + " --load " + path + "/out 2>/dev/null").c_str()), 0);
  auto stored = safetensors::File::open(path + "/out");
  EXPECT_EQ(reinterpret_cast<const float*>(stored.at("out0").data.data())[1], 6);
}

std::string message(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f, const Tensor& x) {
  try {
    detail::export_function(f, {x}, alone());
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(ExportedStep, WhatCannotBeExported) {
  auto net = nn::Linear(6, 1);
  auto step_of = [&](optim::Optimizer& optimizer) {
    return [&](const std::vector<Tensor>& in) {
      optimizer.zero_grad();
      Tensor loss = net(in[0]).pow(2).mean();
      loss.backward();
      optimizer.step();
      return std::vector<Tensor>{loss};
    };
  };
  auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  Tensor before = net->weight.detach().clone();
  double count = 0;
  auto counts = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * ++count}; };
  expect(message(counts, data(4)), "something else each time it is called");
  // The first momentum is another one than those after it.
  optim::SGD dampened(net->parameters(), optim::SGDOptions(0.1).momentum(0.9).dampening(0.5));
  expect(message(step_of(dampened), data(4)), "call it once before");
  optim::Rprop rprop(net->parameters());
  auto with_rate = [&](const std::vector<Tensor>& in) {
    rprop.param_groups()[0].options().set_lr(in[0].sum());
    return std::vector<Tensor>{in[0] * 2};
  };
  expect(message(with_rate, data(4)), "as a number");
  optim::SGD plain(net->parameters(), optim::SGDOptions(0.1));
  auto asks = [&](const std::vector<Tensor>& in) {
    std::vector<Tensor> loss = step_of(plain)(in);
    loss[0].item<float>();
    return loss;
  };
  expect(message(asks, data(4)), "item()");
  Generator own(3);
  auto draws = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{empty({4}).bernoulli_(0.5, own) + in[0]};
  };
  expect(message(draws, rand({4})), "a generator of its own");
  EXPECT_TRUE(equal(net->weight, before)) << "an export that failed changed it";
}

TEST(ExportedStep, NamesOfTheState) {
  auto net = nn::Linear(6, 1);
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1));
  auto step = [&](const Tensor& x) {
    optimizer.zero_grad();
    Tensor loss = net(x).pow(2).mean();
    loss.backward();
    optimizer.step();
    return loss;
  };
  ExportOptions twice = alone();
  twice.modules = {{"a", net.ptr()}, {"a", net.ptr()}};
  EXPECT_THROW(export_(step, {data(4)}, twice), Error);
  twice.modules = {{"a", net.ptr()}, {"b", net.ptr()}};
  EXPECT_EQ(export_(step, {data(4)}, twice).state_names(),
            (std::vector<std::string>{"a.weight", "a.bias", "b.weight", "b.bias"}));
  twice.modules = {{"a\"", net.ptr()}};
  EXPECT_THROW(export_(step, {data(4)}, twice), Error);
  EXPECT_EQ(export_(step, {data(4)}, alone()).state_names(), (std::vector<std::string>{"state0", "state1"}));
}

}  // namespace
}  // namespace brasa
