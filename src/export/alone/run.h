/* What a run takes of memory, and the run: of the first variant that is for its sizes, one stage after the other. Part of runtime.c. */
#ifndef BRASA_ALONE_RUN_H
#define BRASA_ALONE_RUN_H

/* ---- Variants. A stage is what can be computed when the counts before it are known. Behind its head: counts that are read, sizes that are fixed,
   sizes that are equal, symbols read from inputs, those that are known, requirements {text, size that is not negative}, facts, other symbols,
   outputs of the last stage, buffers, steps. A count is {number, buffer, text, least, greatest}; it is one more input, behind the program's, of one size. */

static int64_t given(const alone_tensor* in, const int64_t* counts, int64_t i, int64_t dim) {
  return i < alone_plan[kInputs] ? in[i].sizes[dim] : counts[i - alone_plan[kInputs]];
}

/* Whether all of the counts are known; the cursor goes behind them. */
static int knows_counts(Words* at, const int64_t* counts) {
  int all = 1;
  for (int64_t n = *(*at)++; n > 0; --n) {
    all &= counts[(*at)[0]] >= 0;
    *at += 3;
    skip_size(at);
    skip_size(at);
  }
  return all;
}

/* Whether the stage is for these sizes, the cursor at those that are fixed; then it is behind the facts, else anywhere. `*broken` becomes the text
   of a requirement that does not hold. */
static int takes(Words* at, const alone_tensor* in, const int64_t* counts, int64_t* symbols, int64_t* values,
                 const char** broken) {
  for (int64_t n = *(*at)++; n > 0; --n, *at += 3)
    if (given(in, counts, (*at)[0], (*at)[1]) != (*at)[2]) return 0;
  for (int64_t n = *(*at)++; n > 0; --n, *at += 4)
    if (given(in, counts, (*at)[0], (*at)[1]) != given(in, counts, (*at)[2], (*at)[3])) return 0;
  for (int64_t n = *(*at)++; n > 0; --n, *at += 3) symbols[(*at)[0]] = given(in, counts, (*at)[1], (*at)[2]);
  for (int64_t n = *(*at)++; n > 0; --n, *at += 2) symbols[(*at)[0]] = (*at)[1];
  for (int64_t n = *(*at)++; n > 0; --n) {
    const char* text = alone_text + *(*at)++;
    if (size_at(at, symbols, values) < 0) *broken = text;
  }
  for (int64_t n = *(*at)++; n > 0; --n) {
    int64_t equal = *(*at)++;
    int64_t left = size_at(at, symbols, values), right = size_at(at, symbols, values);
    if ((left == right) != (equal != 0)) return 0;
  }
  return 1;
}

static void forget_counts(int64_t* counts) {
  for (int64_t i = 0; i < alone_plan[kCounts]; ++i) counts[i] = -1;
}

/* The first variant from v on that is for these sizes, as far as the counts that are known say; -1: there is none. */
static int64_t choose(const alone_context* c, const alone_tensor* in, int64_t v, const int64_t* counts,
                      int64_t* symbols, int64_t* values) {
  for (; v < alone_plan[kVariants]; ++v) {
    if (level_at(v) > c->level) continue;
    Words stage = first_stage(v);
    const char* broken;
    int fits = 1;
    for (int64_t s = 0; s < stages_of(v) && fits; ++s, stage = next_stage(stage)) {
      Words at = stage + kStageHead;
      if (!knows_counts(&at, counts)) break;
      fits = takes(&at, in, counts, symbols, values, &broken);
    }
    if (fits) return v;
  }
  return -1;
}

static alone_status no_variant(alone_context* c, int64_t counts) {
  return FAIL(c, ALONE_INPUT, "the program has no code for inputs of these sizes%s together",
              counts ? " and for what sizes depend on" : "");
}

static size_t total(size_t arena, size_t scratch, int32_t threads) {
  if (scratch && (size_t)threads > SIZE_MAX / scratch) return SIZE_MAX;
  size_t all = add(words_in_memory(), arena > SIZE_MAX - 64 ? SIZE_MAX : aligned(arena));
  return add(add(all, scratch * (size_t)threads), 64);
}

/* The most that a variant needs and gives, whatever its counts are. */
static size_t greatest_run(const alone_context* c, int64_t v, const alone_tensor* in, alone_tensor* out,
                           SizeRange* symbols) {
  SizeRange *values = symbols + alone_plan[kSymbols], *counts = values + alone_plan[kValues];
  Words stage = first_stage(v);
  size_t most = 0;
  for (int64_t s = 0; s < stages_of(v); ++s, stage = next_stage(stage)) {
    Words at = stage + kStageHead;
    for (int64_t n = *at++; n > 0; --n) {
      int64_t number = at[0];
      at += 3;
      int64_t least = range_at(&at, symbols, values).low;
      counts[number] = size_range(least, range_at(&at, symbols, values).high);
    }
    at += 1 + 3 * at[0];
    at += 1 + 4 * at[0];
    for (int64_t n = *at++; n > 0; --n, at += 3) {
      int64_t i = at[1], inputs = alone_plan[kInputs];
      symbols[at[0]] = i < inputs ? size_range(in[i].sizes[at[2]], in[i].sizes[at[2]]) : counts[i - inputs];
    }
    for (int64_t n = *at++; n > 0; --n, at += 2) symbols[at[0]] = size_range(at[1], at[1]);
    for (int64_t n = *at++; n > 0; --n) {
      ++at;
      skip_size(&at);
    }
    for (int64_t n = *at++; n > 0; --n) {
      ++at;
      skip_size(&at);
      skip_size(&at);
    }
    size_t arena = greatest_arena(&at, symbols, values);
    for (int32_t o = 0; s == stages_of(v) - 1 && o < alone_outputs(); ++o)
      for (int32_t d = 0; d < alone_output_rank(o); ++d) {
        int64_t size = range_at(&at, symbols, values).high;
        if (out && size > out[o].sizes[d]) out[o].sizes[d] = size;
      }
    size_t bytes = total(arena, scratch_of(steps_of(stage), NULL, NULL, symbols, values), threads_of(c));
    if (bytes > most) most = bytes;
  }
  return most;
}

/* Where there is no work memory yet. A run goes over to another variant when a count tells it so. */
enum { kFew = 512 };
static alone_status greatest_runs(alone_context* c, const alone_tensor* in, alone_tensor* out, size_t* bytes) {
  int64_t few[kFew];
  SizeRange ranges[kFew];
  alone_status status = check_inputs(c, in, 0);
  if (status) return status;
  int64_t *values = few + alone_plan[kSymbols], *counts = values + alone_plan[kValues];
  forget_counts(counts);
  int64_t v = choose(c, in, 0, counts, few, values);
  if (v < 0) return no_variant(c, 0);
  for (int32_t o = 0; out && o < alone_outputs(); ++o) memset(out[o].sizes, 0, sizeof out[o].sizes);
  *bytes = 0;
  while (v >= 0) {
    size_t needs = greatest_run(c, v, in, out, ranges);
    if (needs > *bytes) *bytes = needs;
    v = stages_of(v) == 1 ? -1 : choose(c, in, v + 1, counts, few, values);
  }
  return ALONE_OK;
}

alone_status alone_memory(alone_context* c, const alone_tensor* in, size_t* bytes) {
  return greatest_runs(c, in, NULL, bytes);
}

static int64_t bytes_of_output(int32_t o, const alone_tensor* t) {
  Words r = record(o, kOutputAt, kOutputs);
  int64_t bytes = r[2];
  for (int64_t d = 0; d < r[3]; ++d) bytes = product_of(bytes, t->sizes[d]);
  return bytes;
}

alone_status alone_sizes(alone_context* c, const alone_tensor* in, alone_tensor* out) {
  size_t memory;
  alone_status status = greatest_runs(c, in, out, &memory);
  for (int32_t o = 0; o < alone_outputs() && !status; ++o) out[o].bytes = (size_t)bytes_of_output(o, &out[o]);
  return status;
}

/* ---- A run. */

static alone_status need_weights(alone_context* c) {
  if (alone_plan[kWeightBytes] && !c->weights)
    return FAIL(c, ALONE_FILE, "the program is not open, so it has no weights");
  return ALONE_OK;
}

static alone_status output_sizes(const Work* w, Words* at, alone_tensor* out) {
  alone_context* c = w->context;
  for (int32_t o = 0; o < alone_outputs(); ++o) {
    for (int32_t d = 0; d < alone_output_rank(o); ++d) out[o].sizes[d] = size_at(at, w->symbols, w->values);
    int64_t bytes = bytes_of_output(o, &out[o]);
    if (bytes > 0 && (!out[o].data || out[o].bytes < (size_t)bytes))
      return FAIL(c, ALONE_MEMORY, "output %d has %zu bytes, expected %lld", (int)o,
                  out[o].data ? out[o].bytes : (size_t)0, (long long)bytes);
    alone_status status = check_address(c, out[o].data, "output", o);
    if (status) return status;
  }
  return ALONE_OK;
}

/* The buffers are those of the stages before. */
static alone_status read_counts(const Work* w, Words* at) {
  alone_context* c = w->context;
  for (int64_t n = *(*at)++; n > 0; --n) {
    int64_t number = (*at)[0], is = integer(c, w->buffers[(*at)[1]]);
    const char* text = alone_text + (*at)[2];
    *at += 3;
    int64_t least = size_at(at, w->symbols, w->values), greatest = size_at(at, w->symbols, w->values);
    if (is < least || is > greatest)
      return FAIL(c, ALONE_CHECK,
                  greatest == INT64_MAX ? "%s is %lld, expected at least %lld" : "%s is %lld, expected %lld to %lld",
                  text, (long long)is, (long long)least, (long long)greatest);
    w->counts[number] = is;
  }
  return ALONE_OK;
}

/* Where the stage's buffers, from number `b` on, lie: {from, (of the arena: the symbol that they lie behind,) place}. */
static int64_t place_buffers(const Work* w, Words* at, int64_t b, const alone_tensor* in, const alone_tensor* out) {
  alone_context* c = w->context;
  for (int64_t n = *(*at)++; n > 0; --n, ++b) {
    int64_t from = *(*at)++, begin = from == kFromArena ? w->symbols[*(*at)++] : 0;
    int64_t place = begin + size_at(at, w->symbols, w->values);
    switch (from) {
      case kFromInput: w->buffers[b] = in[place].data; break;
      case kFromWeights: w->buffers[b] = (char*)(uintptr_t)c->weights + place; break;
      case kFromState: w->buffers[b] = (char*)c->state + place; break;
      case kFromOutput: w->buffers[b] = out[place].data; break;
      case kFromPrepared: w->buffers[b] = (char*)c->prepared + place; break;
      case kFromLoop: w->buffers[b] = NULL; break;
      default: w->buffers[b] = w->arena + place;
    }
  }
  return b;
}

/* Whether the first stages of two variants, so many, do the same: they leave the same memory behind them. */
static int same_stages(int64_t v, int64_t other, int64_t stages) {
  Words a = first_stage(v), b = first_stage(other);
  for (; stages > 0; --stages, a = next_stage(a), b = next_stage(b))
    if (*a != *b || memcmp(a, b, 8 * (size_t)(*a + 1))) return 0;
  return 1;
}

/* Where its counts say that another variant is to run, `*fits` becomes 0. */
static alone_status run_variant(Work* w, int64_t v, const alone_tensor* in, alone_tensor* out, int* fits) {
  alone_context* c = w->context;
  Words stage = first_stage(v);
  int64_t buffers = 0;
  for (int64_t s = 0; s < stages_of(v); ++s, stage = next_stage(stage)) {
    Words at = stage + kStageHead, steps = steps_of(stage);
    alone_status status = read_counts(w, &at);
    if (status) return status;
    const char* broken = NULL;
    *fits = takes(&at, in, w->counts, w->symbols, w->values, &broken);
    if (broken) return FAIL(c, ALONE_CHECK, "%s", broken);
    if (!*fits) {
      w->before = v;
      w->ran = s;
      return ALONE_OK;
    }
    size_t arena = arena_of(&at, w->symbols, w->values);
    if (s == stages_of(v) - 1) status = output_sizes(w, &at, out);
    if (status) return status;
    w->scratch_bytes = scratch_of(steps, w->symbols, w->values, NULL, NULL);
    w->scratch = w->arena + aligned(arena);
    size_t needs = total(arena, w->scratch_bytes, w->threads);
    if (c->memory_bytes < needs)
      return FAIL(c, ALONE_MEMORY, "there are %zu bytes of work memory, %zu are needed", c->memory_bytes, needs);
    buffers = place_buffers(w, &at, buffers, in, out);
    if (s >= w->ran || !same_stages(v, w->before, s + 1)) status = run_steps(w, steps + 1, steps + 1 + *steps);
    if (status) return status;
  }
  return ALONE_OK;
}

alone_status alone_run(alone_context* c, const alone_tensor* in, alone_tensor* out) {
  alone_status status = need_weights(c);
  if (!status) status = check_inputs(c, in, 1);
  if (!status) status = enter(c);
  if (status) return status;
  if (!c->memory || c->memory_bytes < words_in_memory() + 64)
    return FAIL(c, ALONE_MEMORY, "there are %zu bytes of work memory; alone_memory says how many it takes",
                c->memory ? c->memory_bytes : (size_t)0);
  if (alone_plan[kStateBytes] && !c->state)
    return FAIL(c, ALONE_MEMORY, "the program has a state: it takes %lld bytes for it",
                (long long)alone_plan[kStateBytes]);
  if (alone_plan[kStateBytes]) status = check_address(c, c->state, "the state", -1);
  if (status) return status;
  size_t lost = aligned((size_t)(uintptr_t)c->memory) - (size_t)(uintptr_t)c->memory;
  char* memory = (char*)c->memory + lost;
  Work w = {.context = c, .buffers = (void**)words_of(c, memory), .threads = threads_of(c), .before = -1};
  w.symbols = (int64_t*)(w.buffers + alone_plan[kBuffers]);
  w.values = w.symbols + alone_plan[kSymbols];
  w.counts = w.values + alone_plan[kValues];
  w.slots = (uint64_t*)(w.counts + alone_plan[kCounts]);
  w.arena = memory + words_in_memory();
  forget_counts(w.counts);
  for (int64_t v = 0; (v = choose(c, in, v, w.counts, w.symbols, w.values)) >= 0; ++v) {
    int fits = 1;
    status = run_variant(&w, v, in, out, &fits);
    if (status) return status;
    if (fits) return leave(c);
  }
  return no_variant(c, w.before >= 0);
}

#endif
