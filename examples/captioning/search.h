#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// Greedy and beam search over any decoder that keeps a cache. Of the standard library only: captioner.cpp runs without Brasa.
namespace captioning {

using Tokens = std::vector<int64_t>;

class Decoder {
 public:
  virtual ~Decoder() = default;
  // The logits of what follows, for each of `tokens`, row after row. Row i goes on with what row parents[i] of the step before has
  // seen; the first step has one row, whose parent is 0.
  virtual const float* step(int64_t position, const Tokens& parents, const Tokens& tokens) = 0;
  virtual int64_t vocabulary() const = 0;
};

struct Limits {
  int64_t start, end;  // tokens
  int64_t most;        // tokens of a caption, the end included
};

// The likeliest token at each step.
inline Tokens greedy(Decoder& decoder, const Limits& limits) {
  Tokens out;
  int64_t last = limits.start;
  for (int64_t position = 0; position < limits.most && last != limits.end; ++position) {
    const float* logits = decoder.step(position, {0}, {last});
    last = std::max_element(logits, logits + decoder.vocabulary()) - logits;
    out.push_back(last);
  }
  return out;
}

struct Beam {
  Tokens tokens;
  double score;  // the sum of logarithms of probabilities; of a finished one, by token
};

// What the beams may go on with, the likeliest first.
struct Candidate {
  int64_t parent, token;
  double score;
};

inline std::vector<Candidate> best_candidates(const float* logits, int64_t vocabulary, const std::vector<Beam>& beams,
                                              size_t count) {
  std::vector<Candidate> all;
  for (size_t b = 0; b < beams.size(); ++b, logits += vocabulary) {
    double greatest = *std::max_element(logits, logits + vocabulary), sum = 0;
    for (int64_t t = 0; t < vocabulary; ++t) sum += std::exp(logits[t] - greatest);
    double base = beams[b].score - greatest - std::log(sum);
    for (int64_t t = 0; t < vocabulary; ++t) all.push_back({static_cast<int64_t>(b), t, base + logits[t]});
  }
  count = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  all.resize(count);
  return all;
}

// The caption of the best score by token that `count` beams find, as transformers' generate(num_beams=count) searches it.
inline Tokens beam_search(Decoder& decoder, const Limits& limits, size_t count) {
  std::vector<Beam> running = {{{}, 0}}, finished;  // finished: the best first
  Tokens parents = {0}, last = {limits.start};
  for (int64_t length = 1; length <= limits.most; ++length) {
    const float* logits = decoder.step(length - 1, parents, last);
    // Twice as many, so that enough go on where some end.
    std::vector<Candidate> candidates = best_candidates(logits, decoder.vocabulary(), running, 2 * count);
    std::vector<Beam> next;
    parents.clear();
    last.clear();
    for (size_t rank = 0; rank < candidates.size(); ++rank) {
      const Candidate& c = candidates[rank];
      Beam beam{running[static_cast<size_t>(c.parent)].tokens, c.score};
      beam.tokens.push_back(c.token);
      if (c.token == limits.end || length == limits.most) {
        beam.score /= static_cast<double>(length);
        if (rank < count) finished.push_back(std::move(beam));
      } else if (next.size() < count) {
        parents.push_back(c.parent);
        last.push_back(c.token);
        next.push_back(std::move(beam));
      }
    }
    std::stable_sort(finished.begin(), finished.end(), [](const Beam& a, const Beam& b) { return a.score > b.score; });
    if (finished.size() > count) finished.resize(count);
    running = std::move(next);
    bool may_improve = !running.empty() && (finished.size() < count ||
                                            running[0].score / static_cast<double>(length) > finished.back().score);
    if (!may_improve) break;
  }
  return finished[0].tokens;
}

inline Tokens caption(Decoder& decoder, const Limits& limits, size_t beams) {
  return beams == 1 ? greedy(decoder, limits) : beam_search(decoder, limits, beams);
}

}  // namespace captioning
