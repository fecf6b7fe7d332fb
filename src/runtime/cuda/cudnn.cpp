#if __has_include(<cudnn_graph.h>) && __has_include(<cuda_runtime_api.h>)
#include <cudnn_graph.h>
#define BRASA_CHECK_PROTOTYPES
#endif

#include "runtime/cuda/cudnn.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/cuda/ways.h"
#include "runtime/float32_products.h"
#include "support/error.h"
#include "support/lazy.h"

namespace brasa::runtime::cuda {
namespace {

using Status = int;
struct Handle_;
using Handle = Handle_*;
using Part = void*;  // of a description: a "backend descriptor"

// Numbers of the interface's enumerations.
constexpr int kFloat = 0, kHalf = 2, kBrain = 9;
constexpr int kOfHandle = 0, kOfDtype = 1, kOfBool = 2, kOfInt = 3, kOfFloat = 4, kOfPointer = 6, kOfMode = 7,
              kOfHeuristic = 8, kOfNote = 11, kOfPart = 15;
constexpr int kConvolution = 1, kEngine = 2, kChoice = 3, kHeuristic = 4, kPlan = 5, kForward = 10, kByWeight = 11,
              kByImage = 12, kGraph = 15, kPointers = 16, kTensor = 17;
constexpr int kCompute = 100, kMode = 101, kDilation = 102, kStride = 103, kAfter = 104, kBefore = 105, kPlaces = 106;
constexpr int kHeuristicMode = 200, kHeuristicGraph = 201, kHeuristicResults = 202;
constexpr int kChoiceEngine = 300, kEngineNotes = 1303;
constexpr int kPlanHandle = 400, kPlanChoice = 401, kPlanWorkspace = 402;
constexpr int kGraphHandle = 800, kGraphOperations = 801;
constexpr int kTensorAlignment = 900, kTensorDtype = 901, kTensorSizes = 902, kTensorStrides = 903, kTensorId = 906;
constexpr int kPointerIds = 1000, kPointerData = 1001, kPointerWorkspace = 1003;
constexpr int kCrossCorrelation = 1, kLikely = 3, kAny = 2;  // of heuristics: what it takes for best, and what works
constexpr int kTensorCoresNote = 0, kRoundedOperandsNote = 1, kRoundedSumsNote = 2;

// The attributes of an operation: scales of the product and of what is there, and its parts.
struct OperationNames {
  int kind, alpha, beta, how, weight, image, result;
};
constexpr OperationNames kOperations[] = {{kForward, 700, 701, 702, 703, 704, 705},
                                          {kByImage, 706, 707, 708, 709, 710, 711},
                                          {kByWeight, 712, 713, 714, 715, 716, 717}};

#ifdef BRASA_CHECK_PROTOTYPES
static_assert(kFloat == CUDNN_DATA_FLOAT && kHalf == CUDNN_DATA_HALF && kBrain == CUDNN_DATA_BFLOAT16);
static_assert(kOfHandle == CUDNN_TYPE_HANDLE && kOfDtype == CUDNN_TYPE_DATA_TYPE && kOfBool == CUDNN_TYPE_BOOLEAN &&
              kOfInt == CUDNN_TYPE_INT64 && kOfFloat == CUDNN_TYPE_FLOAT && kOfPointer == CUDNN_TYPE_VOID_PTR &&
              kOfMode == CUDNN_TYPE_CONVOLUTION_MODE && kOfHeuristic == CUDNN_TYPE_HEUR_MODE &&
              kOfNote == CUDNN_TYPE_NUMERICAL_NOTE && kOfPart == CUDNN_TYPE_BACKEND_DESCRIPTOR);
static_assert(kConvolution == CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR && kEngine == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
              kChoice == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && kHeuristic == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
              kPlan == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
              kForward == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR &&
              kByWeight == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR &&
              kByImage == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR &&
              kGraph == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && kPointers == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR &&
              kTensor == CUDNN_BACKEND_TENSOR_DESCRIPTOR);
static_assert(kCompute == CUDNN_ATTR_CONVOLUTION_COMP_TYPE && kMode == CUDNN_ATTR_CONVOLUTION_CONV_MODE &&
              kDilation == CUDNN_ATTR_CONVOLUTION_DILATIONS && kStride == CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES &&
              kAfter == CUDNN_ATTR_CONVOLUTION_POST_PADDINGS && kBefore == CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS &&
              kPlaces == CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
static_assert(kHeuristicMode == CUDNN_ATTR_ENGINEHEUR_MODE &&
              kHeuristicGraph == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH &&
              kHeuristicResults == CUDNN_ATTR_ENGINEHEUR_RESULTS && kChoiceEngine == CUDNN_ATTR_ENGINECFG_ENGINE &&
              kEngineNotes == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
static_assert(kPlanChoice == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG &&
              kPlanWorkspace == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE &&
              kGraphOperations == CUDNN_ATTR_OPERATIONGRAPH_OPS);
static_assert(kTensorAlignment == CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT && kTensorDtype == CUDNN_ATTR_TENSOR_DATA_TYPE &&
              kTensorSizes == CUDNN_ATTR_TENSOR_DIMENSIONS && kTensorStrides == CUDNN_ATTR_TENSOR_STRIDES &&
              kTensorId == CUDNN_ATTR_TENSOR_UNIQUE_ID);
static_assert(kPointerIds == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS &&
              kPointerData == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS &&
              kPointerWorkspace == CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
static_assert(kCrossCorrelation == CUDNN_CROSS_CORRELATION && kLikely == CUDNN_HEUR_MODE_A &&
              kAny == CUDNN_HEUR_MODE_FALLBACK);
static_assert(kTensorCoresNote == CUDNN_NUMERICAL_NOTE_TENSOR_CORE &&
              kRoundedOperandsNote == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS &&
              kRoundedSumsNote == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
static_assert(kOperations[0].alpha == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA &&
              kOperations[0].beta == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA &&
              kOperations[0].how == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC &&
              kOperations[0].weight == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W &&
              kOperations[0].image == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X &&
              kOperations[0].result == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
static_assert(kOperations[1].alpha == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA &&
              kOperations[1].beta == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA &&
              kOperations[1].how == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC &&
              kOperations[1].weight == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W &&
              kOperations[1].image == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX &&
              kOperations[1].result == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
static_assert(kOperations[2].alpha == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA &&
              kOperations[2].beta == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA &&
              kOperations[2].how == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC &&
              kOperations[2].weight == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW &&
              kOperations[2].image == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X &&
              kOperations[2].result == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
#endif

struct Interface {
  size_t (*version)();
  Status (*create)(Handle*);
  Status (*set_stream)(Handle, void* stream);
  Status (*part_create)(int kind, Part*);
  Status (*part_destroy)(Part);
  Status (*part_set)(Part, int attribute, int type, int64_t count, const void*);
  Status (*part_get)(Part, int attribute, int type, int64_t most, int64_t* count, void*);
  Status (*part_finish)(Part);
  Status (*run)(Handle, Part plan, Part pointers);
};

Loaded<Interface> load() {
  constexpr const char* kNames[] = {"libcudnn.so.9"};
  Library library = open_library(kNames);
  if (!library.handle) return {nullptr, str("there is no cuDNN 9: ", library.why_not)};
  static Interface f;
  bool all = BRASA_BIND(library, cudnnGetVersion, f.version) && BRASA_BIND(library, cudnnCreate, f.create) &&
             BRASA_BIND(library, cudnnSetStream, f.set_stream) &&
             BRASA_BIND(library, cudnnBackendCreateDescriptor, f.part_create) &&
             BRASA_BIND(library, cudnnBackendDestroyDescriptor, f.part_destroy) &&
             BRASA_BIND(library, cudnnBackendSetAttribute, f.part_set) &&
             BRASA_BIND(library, cudnnBackendGetAttribute, f.part_get) &&
             BRASA_BIND(library, cudnnBackendFinalize, f.part_finish) &&
             BRASA_BIND(library, cudnnBackendExecute, f.run);
  if (!all) return {nullptr, str("this cuDNN lacks a function: ", dlerror()), library};
  return {&f, "", library};
}

const Loaded<Interface>& loaded() {
  static constinit Lazy<Loaded<Interface>> l(load);
  return *l;
}
const Interface& dnn() {
  BRASA_ASSERT(loaded().functions, loaded().why_not);
  return *loaded().functions;
}

void check(Status status, const char* what) {
  if (status != 0) throw DeviceError(str("cuDNN: ", what, " failed with status ", status));
}

int dtype_number(DType t) { return t == DType::Float32 ? kFloat : t == DType::Float16 ? kHalf : kBrain; }

// One part of a description: its attributes are set, then it is finished.
class Described {
 public:
  explicit Described(int kind) { check(dnn().part_create(kind, &part_), "creating a description"); }
  ~Described() {
    if (part_) dnn().part_destroy(part_);
  }
  Described(Described&& other) noexcept : part_(std::exchange(other.part_, nullptr)) {}
  Described& operator=(Described&& other) noexcept {
    std::swap(part_, other.part_);
    return *this;
  }

  Part part() const { return part_; }
  template <class T>
  Described& set(int attribute, int type, const T& value) {
    check(dnn().part_set(part_, attribute, type, 1, &value), "describing");
    return *this;
  }
  template <class T>
  Described& set_all(int attribute, int type, const T& values) {
    check(dnn().part_set(part_, attribute, type, static_cast<int64_t>(values.size()), values.data()), "describing");
    return *this;
  }
  Described& finish() {
    check(dnn().part_finish(part_), "finishing a description");
    return *this;
  }
  /// Whether the library can do what is described.
  bool finishes() const { return dnn().part_finish(part_) == 0; }

 private:
  Part part_ = nullptr;
};

constexpr int64_t kImageId = 1, kWeightId = 2, kResultId = 3;
constexpr size_t kMostChoices = 128, kMostMeasured = 8, kLeastPlaces = 2;
constexpr int64_t kMostAligned = 16;

// The library knows two and three places. A line is an image of one row.
std::vector<int64_t> with_places(std::vector<int64_t> v, size_t first, size_t places, int64_t missing) {
  if (places < kLeastPlaces) v.insert(v.begin() + static_cast<int64_t>(first), kLeastPlaces - places, missing);
  return v;
}

// [n, channels, places…] and their distances, of what lies as [n, places…, channels].
Described tensor(const std::vector<int64_t>& sizes, size_t places, DType dtype, const void* data, int64_t id) {
  std::vector<int64_t> lie = with_places(sizes, 1, places, 1), strides(lie.size(), 1);
  for (size_t d = lie.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * lie[d + 1];
  auto channels_second = [](std::vector<int64_t>& v) { std::rotate(v.begin() + 1, v.end() - 1, v.end()); };
  channels_second(lie);
  channels_second(strides);
  Described t(kTensor);
  t.set(kTensorId, kOfInt, id)
      .set(kTensorDtype, kOfDtype, dtype_number(dtype))
      .set_all(kTensorSizes, kOfInt, lie)
      .set_all(kTensorStrides, kOfInt, strides)
      .set(kTensorAlignment, kOfInt, alignment(data, kMostAligned))
      .finish();
  return t;
}

// A convolution ready to run, for all operands of its kind.
class Way {
 public:
  Way(const Convolution& c, bool tf32, bool measured, Handle handle)
      : handle_(handle), most_(measured ? kMostMeasured : 1) {
    size_t places = c.stride.size(), described = std::max(places, kLeastPlaces);
    Described image = tensor(c.image, places, c.dtype, c.image_data, kImageId),
              weight = tensor(c.weight, places, c.dtype, c.weight_data, kWeightId),
              result = tensor(c.result, places, c.dtype, c.result_data, kResultId);
    Described how(kConvolution);
    std::vector<int64_t> padding = with_places(c.padding, 0, places, 0);
    how.set(kCompute, kOfDtype, kFloat)
        .set(kMode, kOfMode, kCrossCorrelation)
        .set(kPlaces, kOfInt, static_cast<int64_t>(described))
        .set_all(kStride, kOfInt, with_places(c.stride, 0, places, 1))
        .set_all(kDilation, kOfInt, with_places(c.dilation, 0, places, 1))
        .set_all(kBefore, kOfInt, padding)
        .set_all(kAfter, kOfInt, padding)
        .finish();
    const OperationNames& names = kOperations[static_cast<size_t>(c.computed)];
    Described operation(names.kind);
    operation.set(names.image, kOfPart, image.part())
        .set(names.weight, kOfPart, weight.part())
        .set(names.result, kOfPart, result.part())
        .set(names.how, kOfPart, how.part())
        .set(names.alpha, kOfFloat, 1.0F)
        .set(names.beta, kOfFloat, 0.0F)
        .finish();
    Described graph(kGraph);
    graph.set(kGraphHandle, kOfHandle, handle).set(kGraphOperations, kOfPart, operation.part()).finish();
    for (int mode : {kLikely, kAny})
      if (plans_.empty()) find(graph, mode, c.dtype == DType::Float32 && !tf32);
    if (plans_.empty())
      throw DeviceError(str("cuDNN knows no way to convolve images ", c.image, " with weights ", c.weight, " to ",
                            c.result, " of ", name(c.dtype)));
  }

  void run(const Convolution& c, Device& device, Stream stream) const {
    check(run_as(plans_[best_], c, device, stream), "a convolution");
  }

  // Keeps the plan that takes the least time; the results are written anew afterwards.
  void measure(const Convolution& c, const std::string& key, Measuring& measuring, Device& device, Stream stream) {
    constexpr int kRuns = 3;
    best_ = chosen(plans_.size(), kRuns, key, measuring, device, stream,
                   [&](size_t i) { return run_as(plans_[i], c, device, stream); });
  }

 private:
  struct Plan {
    Described description;
    size_t workspace;
  };

  // The best first. `exact`: not those that round operands of float32, as tensor cores do.
  void find(const Described& graph, int mode, bool exact) {
    Described heuristic(kHeuristic);
    heuristic.set(kHeuristicGraph, kOfPart, graph.part()).set(kHeuristicMode, kOfHeuristic, mode);
    if (!heuristic.finishes()) return;
    std::vector<Described> choices;
    std::vector<Part> parts;
    for (size_t i = 0; i < kMostChoices; ++i) parts.push_back(choices.emplace_back(kChoice).part());
    int64_t found = 0;
    if (dnn().part_get(heuristic.part(), kHeuristicResults, kOfPart, kMostChoices, &found, parts.data()) != 0) return;
    choices.erase(choices.begin() + std::min<int64_t>(found, kMostChoices), choices.end());
    for (Described& choice : choices) {
      if (!is_exact(choice, exact)) continue;
      Described plan(kPlan);
      plan.set(kPlanHandle, kOfHandle, handle_).set(kPlanChoice, kOfPart, choice.part());
      if (!plan.finishes()) continue;
      int64_t bytes = 0, count = 0;
      check(dnn().part_get(plan.part(), kPlanWorkspace, kOfInt, 1, &count, &bytes), "asking for a workspace");
      plans_.push_back({std::move(plan), static_cast<size_t>(bytes)});
      choices_.push_back(std::move(choice));
      if (plans_.size() == most_) return;
    }
  }

  static bool is_exact(const Described& choice, bool exact) {
    Described engine(kEngine);
    Part part = engine.part();
    int64_t count = 0;
    check(dnn().part_get(choice.part(), kChoiceEngine, kOfPart, 1, &count, &part), "asking for an engine");
    std::array<int, 32> notes{};
    check(dnn().part_get(engine.part(), kEngineNotes, kOfNote, notes.size(), &count, notes.data()), "asking an engine");
    auto end = notes.begin() + std::min<int64_t>(count, static_cast<int64_t>(notes.size()));
    return std::none_of(notes.begin(), end, [&](int note) {
      return note == kRoundedSumsNote || (exact && (note == kTensorCoresNote || note == kRoundedOperandsNote));
    });
  }

  Status run_as(const Plan& plan, const Convolution& c, Device& device, Stream stream) const {
    check(dnn().set_stream(handle_, device.native_stream(stream)), "cudnnSetStream");
    Scratch workspace(plan.workspace, device, stream);
    Described pointers(kPointers);
    pointers.set_all(kPointerIds, kOfInt, std::array{kImageId, kWeightId, kResultId})
        .set_all(kPointerData, kOfPointer, std::array{c.image_data, c.weight_data, c.result_data})
        .set(kPointerWorkspace, kOfPointer, workspace.data());
    return pointers.finishes() ? dnn().run(handle_, plan.description.part(), pointers.part()) : -1;
  }

  Handle handle_;
  size_t most_;                     // plans
  std::vector<Described> choices_;  // of the plans
  std::vector<Plan> plans_;
  size_t best_ = 0;
};

struct Convolutions {
  std::mutex mutex;
  Handle handle = nullptr;
  std::map<std::vector<int64_t>, std::unique_ptr<Way>> ways;
};

int64_t elements(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

}  // namespace

bool have_convolutions(std::string* why_not) {
  if (why_not) *why_not = loaded().why_not;
  return loaded().functions != nullptr;
}

const Library& convolutions_library() { return loaded().library; }
size_t convolutions_version() { return have_convolutions() ? dnn().version() : 0; }

bool takes_convolution(DType dtype, size_t places) {
  return (dtype == DType::Float32 || is_reduced_floating(dtype)) && places >= 1 && places <= 3;
}

void run_convolution(const Convolution& c, Device& device, Stream stream, Measuring* measuring) {
  const std::vector<int64_t>* sizes[] = {&c.result, &c.image, &c.weight};
  void* computed[] = {c.result_data, c.image_data, c.weight_data};
  auto which = static_cast<size_t>(c.computed);
  int64_t count = elements(*sizes[which]);
  if (count == 0) return;
  // A sum of nothing.
  if (std::any_of(std::begin(sizes), std::end(sizes), [](const auto* s) { return elements(*s) == 0; }))
    return device.fill(computed[which], 0, static_cast<size_t>(count * size_of(c.dtype)), stream);
  bool tf32 = c.dtype == DType::Float32 && float32_products_in_tf32();
  std::vector<int64_t> key = {static_cast<int64_t>(which),
                              static_cast<int64_t>(c.dtype),
                              static_cast<int64_t>(c.stride.size()),
                              alignment(c.image_data, kMostAligned),
                              alignment(c.weight_data, kMostAligned),
                              alignment(c.result_data, kMostAligned),
                              tf32,
                              measuring != nullptr};
  for (const auto* v : {&c.image, &c.weight, &c.result, &c.stride, &c.padding, &c.dilation})
    key.insert(key.end(), v->begin(), v->end());
  Convolutions& all = kept_of<Convolutions>(device);
  std::lock_guard lock(all.mutex);
  device.native_stream(stream);  // the device is current from here on
  if (!all.handle) check(dnn().create(&all.handle), "cudnnCreate");
  std::unique_ptr<Way>& way = all.ways[key];
  if (!way) {
    way = std::make_unique<Way>(c, tf32, measuring != nullptr, all.handle);
    if (measuring) way->measure(c, str("cuDNN ", convolutions_version(), " ", key), *measuring, device, stream);
  }
  way->run(c, device, stream);
}

}  // namespace brasa::runtime::cuda
