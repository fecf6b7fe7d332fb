#include <algorithm>
#include <cstring>
#include <vector>

#include "compiler/libraries/rows.h"
#include "runtime/thread_pool.h"

// The places of true elements: pieces of the mask are counted, and then each writes its own, words without one left out.
namespace brasa::compiler {
namespace {

constexpr int64_t kPiece = int64_t{1} << 15, kWord = 8;

// Eight elements of a mask, a byte each that is 1 where it was not 0.
uint64_t word_at(const uint8_t* mask) {
  uint64_t word;
  std::memcpy(&word, mask, sizeof word);
  word |= word >> 4;
  word |= word >> 2;
  return (word | word >> 1) & 0x0101010101010101;
}

int64_t count(const uint8_t* mask, int64_t begin, int64_t end) {
  constexpr int64_t kMost = 255 * kWord;  // a byte counts so many words
  constexpr uint64_t kEven = 0x00ff00ff00ff00ff, kOnes = 0x0001000100010001;
  int64_t n = 0, i = begin;
  while (i + kWord <= end) {
    uint64_t counts = 0;
    for (int64_t stop = std::min(end, i + kMost); i + kWord <= stop; i += kWord) counts += word_at(mask + i);
    n += static_cast<int64_t>(((counts & kEven) + (counts >> 8 & kEven)) * kOnes >> 48);
  }
  for (; i < end; ++i) n += mask[i] != 0;
  return n;
}

// Writes places from `out` on, as far as there is room.
void write(const uint8_t* mask, int64_t begin, int64_t end, int64_t* out, const int64_t* stop) {
  for (int64_t i = begin; i < end && out < stop;) {
    bool whole = i + kWord <= end;
    if (whole && word_at(mask + i) == 0) {
      i += kWord;
    } else if (whole && stop - out >= kWord) {
      for (int64_t k = 0; k < kWord; ++k, ++i) {
        *out = i;
        out += mask[i] != 0;
      }
    } else {
      if (mask[i]) *out++ = i;
      ++i;
    }
  }
}

// prim::positions(mask, count)
void run(const LibraryCall& call) {
  const auto* mask = static_cast<const uint8_t*>(call.inputs[0].data);
  int64_t size = call.inputs[0].sizes[0], most = call.outputs[0].sizes[0], pieces = (size + kPiece - 1) / kPiece;
  auto* out = static_cast<int64_t*>(call.outputs[0].data);
  auto end_of = [&](int64_t piece) { return std::min(size, (piece + 1) * kPiece); };
  std::vector<int64_t> first(static_cast<size_t>(pieces) + 1);  // which of all places is a piece's first one
  runtime::parallel_for(pieces, 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) first[p + 1] = count(mask, p * kPiece, end_of(p));
  });
  for (int64_t p = 0; p < pieces; ++p) first[p + 1] = std::min(most, first[p] + first[p + 1]);
  runtime::parallel_for(pieces, 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      if (first[p] < first[p + 1]) write(mask, p * kPiece, end_of(p), out + first[p], out + first[p + 1]);
  });
  std::fill(out + first.back(), out + most, 0);
}

}  // namespace

const Implementation kPositions = {
    .library = "host", .name = "places of true elements", .primitive = "prim::positions", .run = run};

}  // namespace brasa::compiler
