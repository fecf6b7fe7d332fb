#include "ops/table.h"
#include "compiler/libraries/alone.h"
#include "compiler/libraries/rows.h"
#include "runtime/float32_products.h"
#include "support/error.h"

namespace brasa::compiler {

namespace {

constexpr const Implementation* kTable[] = {
    &kAttention,
    &kAttentionBackward,
    &kAttentionInTf32,
    &kAttentionInTf32Backward,
    &kMaskedAttention,
    &kBlockedAttention,
    &kBlockedAttentionBackward,
    &kSummedGradients,
    &kPackedGradients,
    &kConvolution,
    &kConvolutionByInput,
    &kConvolutionByWeight,
    &kLoop,
    &kBranch,
    &kWhile,
    &kActivatedProduct,
    &kBiasedProduct,
    &kBiasedFloat32Product,
    &kProduct,
    &kProductInTf32,
    &kSortOnDevice,
    &kSort,
    &kRowGroups,
    &kPositions,
    &kAloneSort,
    &kAloneFft,
    &kAloneCholesky,
    &kAloneLu,
    &kAloneLuOrder,
    &kAloneTriangularSolve,
    &kAloneQr,
    &kAloneReflectors,
    &kAloneEigh,
    &kAloneSvd,
    &kCholesky,
    &kUpperCholesky,
    &kCholeskyInverse,
    &kLu,
    &kLuOfTranspose,
    &kLdl,
    &kLdlSolve,
    &kLuPermutation,
    &kTriangularSolve,
    &kJoinParts,
    &kQr,
    &kGeqrf,
    &kHouseholderProduct,
    &kEigh,
    &kSvd,
    &kEig,
    &kFft,
    &kFftInPlace,
    &kFftFromHalf,
    &kFftReal,
    &kFftJoined,
    &kSparseMm,
    &kSplitParts,
    &kConcatOnDevice,
    &kConcat,
};

}  // namespace

DeviceCall::~DeviceCall() = default;

void DeviceCall::repeat(int64_t count, std::span<const int64_t> /*apart*/) {
  fail_internal(str("a call that computes one group was to compute ", count));
}

std::span<const Implementation* const> implementations() { return kTable; }

Libraries::Libraries(std::span<const std::string_view> names) : names_(names.begin(), names.end()) {
  for (std::string_view name : names) {
    size_t before = rows_.size();
    for (const Implementation* i : kTable) {
      if (i->library != name) continue;
      const ir::Op* op = ops::find(i->primitive);
      BRASA_ASSERT(op, "no primitive ", i->primitive);
      rows_.emplace_back(op, i);
    }
    BRASA_ASSERT(rows_.size() > before, "there is no library '", name, "'");
  }
}

const Implementation* Libraries::find(const ir::Node& n) const {
  for (auto [op, i] : rows_)
    if (op == n.op && !i->covers && (!i->supports || i->supports(n))) return i;
  return nullptr;
}

bool Libraries::takes(const ops::Row& row, const ir::Args& args) const {
  for (auto [op, i] : rows_)
    if (op == &row) return find({&row, args, row.type(args), nullptr, 0, 0}) != nullptr;
  return false;
}

std::vector<const Implementation*> Libraries::of_groups(const ir::Op* op) const {
  std::vector<const Implementation*> out;
  for (auto [primitive, i] : rows_)
    if (primitive == op && i->covers) out.push_back(i);
  return out;
}

ir::Value Libraries::first_sums(ir::Value x, const std::vector<int64_t>& dims) const {
  for (auto [primitive, i] : rows_)
    if (ir::Value sums = i->first_sums ? i->first_sums(x, dims) : ir::Value()) return sums;
  return {};
}

Libraries libraries_of(const runtime::Properties& device) {
  std::vector<std::string_view> names = device.libraries;
  if (!runtime::float32_products_in_tf32())
    std::erase_if(names, [](std::string_view name) { return name.ends_with("_tf32"); });
  return Libraries(names);
}

int64_t LibraryCall::integer(size_t arg) const {
  return ir::evaluate(args[arg].get<ir::Expr>(), [&](const ir::ExprNode& s) { return symbols[s.id]; });
}

}  // namespace brasa::compiler
