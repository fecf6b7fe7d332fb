#pragma once

#include "compiler/libraries/library.h"

// The rows of table.cpp, one file each.
namespace brasa::compiler {

// attention.cpp
extern const Implementation kBlockedAttention, kBlockedAttentionBackward;
extern const Implementation kBranch;
extern const Implementation kConcat;
extern const Implementation kFft, kFftInPlace, kFftFromHalf, kFftReal, kFftJoined;
extern const Implementation kLoop;
extern const Implementation kPositions;
extern const Implementation kRowGroups;
extern const Implementation kSort;
extern const Implementation kSparseMm;
extern const Implementation kWhile;
// cuda/attention.cpp
extern const Implementation kAttention, kAttentionBackward, kAttentionInTf32, kAttentionInTf32Backward,
    kMaskedAttention, kPackedGradients, kSummedGradients;
// cuda/convolution.cpp
extern const Implementation kConvolution, kConvolutionByInput, kConvolutionByWeight;
// cuda/sort.cpp
extern const Implementation kSortOnDevice;
// cuda/concat.cpp, and whether concat.cpp takes one
extern const Implementation kConcatOnDevice;
bool is_long_concat(const ir::Node& n);
// cuda/product.cpp
extern const Implementation kActivatedProduct, kBiasedProduct, kBiasedFloat32Product, kProduct, kProductInTf32;
// parts.cpp
extern const Implementation kJoinParts, kSplitParts;
// lapack.cpp
extern const Implementation kCholesky, kUpperCholesky, kCholeskyInverse, kLu, kLuOfTranspose, kLdl, kLdlSolve,
    kLuPermutation, kTriangularSolve, kQr, kGeqrf, kHouseholderProduct, kEigh, kSvd, kEig;

}  // namespace brasa::compiler
