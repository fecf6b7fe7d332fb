/* Sorts lines of a tensor, or finds a part of what is sorted: the items up to the part's end stay in a heap, which then is sorted. Stable: of
   equal elements the first comes first; NaN is the greatest, the zeros are equal. Part of runtime.c. */
#ifndef BRASA_ALONE_SORT_H
#define BRASA_ALONE_SORT_H

typedef struct {
  uint64_t key;
  int64_t place;
} Item;

/* A number whose order is that of the elements. `infinity`: its bits, where they are floating. */
static uint64_t key_of(const char* element, int64_t width, int64_t is_signed, uint64_t infinity) {
  uint64_t bits = 0, sign = (uint64_t)1 << (8 * width - 1);
  memcpy(&bits, element, (size_t)width);
  if (!infinity) return is_signed ? bits ^ sign : bits;
  if ((bits & (sign - 1)) > infinity) return UINT64_MAX;
  if (bits == sign) bits = 0;
  return bits & sign ? ~bits & (sign - 1) : bits | sign;
}

static int before(Item a, Item b) { return a.key != b.key ? a.key < b.key : a.place < b.place; }

/* Puts an item into a heap of n, whose greatest is the first, at i or below. */
static void sift(Item* heap, int64_t n, int64_t i, Item item) {
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && before(heap[child], heap[child + 1])) ++child;
    if (!before(item, heap[child])) break;
    heap[i] = heap[child];
  }
  heap[i] = item;
}

static void make_heap(Item* items, int64_t n) {
  for (int64_t i = n / 2 - 1; i >= 0; --i) sift(items, n, i, items[i]);
}

static void sort_heap(Item* heap, int64_t n) {
  while (--n > 0) {
    Item greatest = heap[0];
    sift(heap, n, 0, heap[n]);
    heap[n] = greatest;
  }
}

/* Operand, values and indices. Facts: bytes of an element, signed?, the bits of infinity (0: integers), descending? Sizes: lines, elements of
   one, how far apart they are, first and count of the part. */
static const char* sort(const Call* c) {
  int64_t width = c->facts[0], is_signed = c->facts[1], descending = c->facts[3];
  uint64_t infinity = (uint64_t)c->facts[2];
  const char* in = c->tensors[0];
  char* values = c->tensors[1];
  int64_t* indices = c->tensors[2];
  Item* items = c->work;
  int64_t outer = c->sizes[0], length = c->sizes[1], inner = c->sizes[2], first = c->sizes[3], count = c->sizes[4];
  int64_t last = first + count;
  for (int64_t line = 0; count > 0 && line < outer * inner; ++line) {
    const char* from = in + (line / inner * length * inner + line % inner) * width;
    for (int64_t k = 0; k < length; ++k) {
      uint64_t key = key_of(from + k * inner * width, width, is_signed, infinity);
      Item item = {descending ? ~key : key, k};
      if (k < last) {
        items[k] = item;
        if (k == last - 1) make_heap(items, last);
      } else if (before(item, items[0])) {
        sift(items, last, 0, item);
      }
    }
    sort_heap(items, last);
    int64_t start = line / inner * count * inner + line % inner;
    for (int64_t k = 0; k < count; ++k) {
      int64_t place = items[first + k].place;
      memcpy(values + (start + k * inner) * width, from + place * inner * width, (size_t)width);
      indices[start + k * inner] = place;
    }
  }
  return NULL;
}

#endif
