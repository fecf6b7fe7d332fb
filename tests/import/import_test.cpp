#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/error.h>
#include <brasa/import.h>
#include <brasa/nn.h>
#include <brasa/pickle.h>
#include <brasa/serialize.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "error_of.h"
#include "io/zip.h"
#include "support/mapped_file.h"

namespace brasa::io {
namespace {

namespace fs = std::filesystem;

std::string archive(const std::string& name) { return BRASA_TEST_DATA "/models/" + name + ".pt2"; }

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("brasa_import_" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream((path / name), std::ios::binary) << bytes;
    return (path / name).string();
  }
  fs::path path;
};

using Records = std::vector<std::pair<std::string, std::string>>;

Records records_of(const std::string& path) {
  MappedFile file = map_file(path);
  ZipReader zip(file.bytes, path);
  Records out;
  for (const std::string& name : zip.names()) out.emplace_back(name, zip.text(name));
  return out;
}
std::string zipped(const Records& records) {
  std::string out;
  ZipWriter zip([&](const void* p, size_t n) { out.append(static_cast<const char*>(p), n); });
  for (const auto& [name, bytes] : records) zip.add(name, bytes);
  zip.finish();
  return out;
}
// The archive with a text of its program replaced wherever it stands.
std::string edited(const std::string& name, const std::string& from, const std::string& to) {
  Records records = records_of(archive(name));
  for (auto& [record, text] : records)
    if (record.ends_with("models/model.json"))
      for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return zipped(records);
}
TEST(Import, ParametersHaveTheirPythonNamesAndGradients) {
  ExportedModule net = load_pt2(archive("cond"));
  auto parameters = net->named_parameters();
  EXPECT_EQ(parameters.keys(), (std::vector<std::string>{"left.weight", "left.bias", "right.weight", "right.bias"}));
  // x.sum() > 0 takes relu(left(x)).
  Tensor x = rand({3, 6});
  net(x)[0].sum().backward();
  Tensor w = parameters["left.weight"].detach().clone().requires_grad_(), b = parameters["left.bias"].detach();
  nn::functional::relu(nn::functional::linear(x, w, b)).sum().backward();
  EXPECT_TRUE(parameters["left.weight"].grad().allclose(w.grad()));
  EXPECT_TRUE(parameters["right.weight"].grad().equal(zeros_like(parameters["right.weight"])));  // as PyTorch gives it
}

// Branches and loops are in the graph, which serves all lengths; a gradient through a loop whose steps are not known is none.
TEST(Import, ControlFlowIsInOneGraph) {
  manual_seed(1);
  auto scan_inputs = [](int64_t n) { return std::vector<Tensor>{rand({2, 4}), randn({n, 2, 4})}; };
  auto while_inputs = [](int64_t n) { return std::vector<Tensor>{rand({n}) + 0.5}; };
  auto run = [](auto& f, const std::vector<Tensor>& in) { return in.size() == 1 ? f(in[0]) : f(in[0], in[1]); };
  for (bool loops : {false, true}) {
    ExportedModule net = load_pt2(archive(loops ? "dynamic_while" : "scan_of_branches"));
    auto call = [net](const auto&... in) { return net.ptr()->forward(in...); };
    auto fast = compile(call, {.fullgraph = true});
    for (int64_t n : {3, 7, 5, 20, 2}) {
      std::vector<Tensor> in = loops ? while_inputs(n) : scan_inputs(n);
      std::vector<Tensor> want = run(call, in), got = run(fast, in);
      ASSERT_EQ(want.size(), got.size());
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(want[i].allclose(got[i], 1e-4, 1e-5)) << i;
      if (loops) continue;
      Tensor w = net->named_parameters()["w"], gradients[2];
      for (bool compiled : {false, true}) {
        net->zero_grad();
        (compiled ? run(fast, in) : run(call, in))[1].sum().backward();
        gradients[compiled] = w.grad().clone();
      }
      EXPECT_TRUE(gradients[0].allclose(gradients[1], 1e-4, 1e-5));
    }
    EXPECT_LE(fast.explain().recompiles.size(), 1u) << fast.explain().str();
    EXPECT_TRUE(fast.explain().breaks.empty());
  }
}

// GPT-2's last layer is its table of tokens.
TEST(Import, ATiedParameterIsOne) {
  ExportedModule net = load_pt2(archive("gpt2"));
  size_t tables = 0;
  for (const auto& p : net->named_parameters()) tables += p.value().sizes() == IntArrayRef({100, 32});
  EXPECT_EQ(tables, 1u);
}

TEST(Import, TrainsEagerAndCompiled) {
  for (bool compiled : {false, true}) {
    ExportedModule net = load_pt2(archive("dynamic_batch"));
    manual_seed(1);
    Tensor x = rand({4, 1, 8, 8}), scale = ones({4});
    auto loss_of = [net](const Tensor& a, const Tensor& b) {
      return net.ptr()->forward(a, b)[0].select(1, 0).log().neg().mean();
    };
    auto fast = compile(loss_of, {.backend = "aot_eager"});
    double first = 0, last = 0;
    for (int i = 0; i < 5; ++i) {
      net->zero_grad();
      Tensor loss = compiled ? fast(x, scale) : loss_of(x, scale);
      loss.backward();
      {
        NoGradGuard no_grad;
        for (Tensor& p : net->parameters()) p.sub_(p.grad(), 0.1);
      }
      (i == 0 ? first : last) = loss.item<double>();
    }
    EXPECT_LT(last, first) << compiled;
  }
}

TEST(Import, AJointGraphAddsToTheGradients) {
  ExportedModule net = load_pt2(archive("joint_mlp"));
  manual_seed(1);
  Tensor x = rand({4, 8}), target = zeros({4}, kInt64);
  if (net->inputs()[0].find("[4, 8]") == std::string::npos) GTEST_SKIP() << net->inputs()[0];
  net(x, target);
  Tensor once = net->named_parameters()["model.0.weight"].grad().clone();
  net(x, target);
  EXPECT_TRUE(net->named_parameters()["model.0.weight"].grad().allclose(once * 2));
}

TEST(Import, InputsMustBeThoseOfTheExport) {
  ExportedModule net = load_pt2(archive("dynamic_batch"));
  auto error = [&](const Tensor& x, const Tensor& scale) { return error_of([&] { net(x, scale); }); };
  EXPECT_EQ(error(rand({2, 1, 8, 8}), rand({2})), "");
  EXPECT_NE(error(rand({2, 1, 8, 8}).to(kFloat64), rand({2})).find("got dtype float64"), std::string::npos);
  EXPECT_NE(error(rand({200, 1, 8, 8}), rand({200})).find("s77 from 1 to 128"), std::string::npos);
  EXPECT_NE(error(rand({2, 1, 8, 8}), rand({3})).find("where s77 is 2"), std::string::npos);
  EXPECT_NE(error(rand({2, 1, 8}), rand({2})).find("got sizes [2, 1, 8]"), std::string::npos);
  EXPECT_NE(error_of([&] { net(rand({2})); }).find("got 1 inputs"), std::string::npos);
}

TEST(Import, WeightsAreLoadedAndSaved) {
  Folder folder;
  ExportedModule a = load_pt2(archive("dynamic_batch")), b = load_pt2(archive("dynamic_batch"));
  {
    NoGradGuard no_grad;
    for (Tensor& p : a->parameters()) p.add_(1);
  }
  save(a, (folder.path / "a.safetensors").string());
  load(b, (folder.path / "a.safetensors").string());
  Tensor x = rand({2, 1, 8, 8}), scale = rand({2});
  EXPECT_TRUE(a(x, scale)[1].equal(b(x, scale)[1]));
}

TEST(Import, AMissingOperatorIsNamedWithItsNodeAndLine) {
  Folder folder;
  std::string file = edited("cond", "torch.ops.aten.sum.default", "torch.ops.aten.no_such_operator.default");
  std::string path = folder.write("missing.pt2", file);
  std::string message = error_of([&] { load_pt2(path); });
  EXPECT_NE(message.find("node 'sum_1' (torch.ops.aten.no_such_operator.default)"), std::string::npos) << message;
  EXPECT_NE(describe_pt2(path).find("no_such_operator.default  (Brasa has it not)"), std::string::npos);
  file = edited("cond", R"("metadata": {)",
                R"("metadata": {"stack_trace": "  File \"net.py\", line 7, in forward\n    y = x.sum()\n", )");
  file = edited(
      "cond", R"("metadata": {"nn_module_stack")",
      R"("metadata": {"stack_trace": "  File \"net.py\", line 7, in forward\n    y = x.sum()\n", "nn_module_stack")");
  path = folder.write("line.pt2", file);
  ExportedModule net = load_pt2(path);
  EXPECT_EQ(net(rand({2, 6})).size(), 1u);
  Records records = records_of(path);
  for (auto& [name, text] : records)
    if (size_t at; name.ends_with("model.json") && (at = text.find("aten.sum.default")) != text.npos)
      text.replace(at, 16, "aten.nothing.dflt");
  message = error_of([&] { load_pt2(folder.write("both.pt2", zipped(records))); });
  EXPECT_NE(message.find("made by net.py:7: y = x.sum()"), std::string::npos) << message;
}

TEST(Import, FormsOfOlderVersions) {
  Folder folder;
  ExportedModule now = load_pt2(archive("cond"));
  pickle::Value::Pairs state;
  for (const auto& item : now->named_parameters())
    state.emplace_back(item.key(), pickle::Value::parameter(item.value()));
  std::string weights = pickle::dump(pickle::Value::ordered_dict(state)),
              constants = pickle::dump(pickle::Value::dict({}));
  std::string program;
  for (const auto& [name, text] : records_of(archive("cond")))
    if (name.ends_with("models/model.json")) program = text;
  std::string of_2_8 = zipped({{"m/archive_format", "pt2"},
                               {"m/models/model.json", program},
                               {"m/data/weights/model.pt", weights},
                               {"m/data/constants/model.pt", constants}});
  std::string of_2_6 = zipped({{"serialized_exported_program.json", program},
                               {"serialized_state_dict.pt", weights},
                               {"serialized_constants.pt", constants},
                               {"version", "8.3"}});
  Tensor x = rand({3, 6});
  for (const std::string& file : {of_2_8, of_2_6})
    EXPECT_TRUE(load_pt2(folder.write("old.pt2", file))(x)[0].equal(now(x)[0]));
}

TEST(Import, TorchScriptIsNamed) {
  std::string file = std::string(BRASA_TEST_DATA) + "/checkpoints/libtorch/script.pt";
  for (auto read : {+[](const std::string& f) { io::load_pt2(f); }, +[](const std::string& f) { io::describe_pt2(f); }})
    try {
      read(file);
      FAIL();
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("a TorchScript archive, whose code Brasa does not run"), std::string::npos)
          << e.what();
    }
}

TEST(Import, DamagedArchivesAreErrors) {
  Folder folder;
  MappedFile mapped = map_file(archive("nested_cond"));
  std::string whole(reinterpret_cast<const char*>(mapped.bytes.data()), mapped.bytes.size());
  for (size_t n = 0; n < whole.size(); n += 997)
    EXPECT_NE(error_of([&] { load_pt2(folder.write("cut.pt2", whole.substr(0, n))); }), "") << n;
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    // Any other exception fails the test.
    error_of([&] { load_pt2(folder.write("damaged.pt2", damaged))(rand({3, 4})); });
  }
}

// Values of the program's JSON of other kinds than belong there.
TEST(Import, DamagedProgramsAreErrors) {
  Folder folder;
  Records records = records_of(archive("while_loop"));
  auto program =
      std::find_if(records.begin(), records.end(), [](auto& r) { return r.first.ends_with("models/model.json"); });
  nlohmann::json good = nlohmann::json::parse(program->second);
  nlohmann::json flat = good.flatten();
  std::mt19937 random(2);
  const nlohmann::json kWrong[] = {nullptr,  true, -1, 1e300, "x", nlohmann::json::array(), nlohmann::json::object(),
                                   INT64_MAX};
  for (int i = 0; i < 400; ++i) {
    nlohmann::json bad = good;
    auto at = flat.begin();
    std::advance(at, static_cast<ptrdiff_t>(random() % flat.size()));
    nlohmann::json::json_pointer where(at.key());
    for (unsigned up = random() % 4; up > 0 && !where.empty(); --up) where.pop_back();
    if (where.empty()) continue;
    bad[where] = kWrong[random() % std::size(kWrong)];
    program->second = bad.dump();
    error_of([&] { load_pt2(folder.write("program.pt2", zipped(records))); });
  }
}

}  // namespace
}  // namespace brasa::io
