/* The identity of weights: a hash of all bytes behind their head. The export writes it, and programs check it; C and C++. */
#ifndef BRASA_ALONE_WEIGHTS_H
#define BRASA_ALONE_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Takes a word into a hash. Of words, and of hashes, no two give the same; so a file with one other word is another file. */
static inline uint64_t alone_mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 32;
}

/* Eight words at a time in hashes of their own, which a processor computes side by side: as fast as memory is read. */
static inline uint64_t alone_hash(const void* data, size_t bytes) {
  uint64_t lanes[8] = {1, 2, 3, 4, 5, 6, 7, 8}, block[8], hash = bytes;
  const char* at = (const char*)data;
  for (size_t left = bytes; left > 0;) {
    size_t n = left < sizeof block ? left : sizeof block;
    if (n < sizeof block) memset(block, 0, sizeof block);
    memcpy(block, at, n);
    for (int i = 0; i < 8; ++i) lanes[i] = alone_mix(lanes[i], block[i]);
    at += n;
    left -= n;
  }
  for (int i = 0; i < 8; ++i) hash = alone_mix(hash, lanes[i]);
  return hash;
}

#endif
