#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "runtime/cuda/tensor_cores.h"

namespace brasa::runtime::cuda {

/// Products of rows of features in shared memory. A warp has 16 rows, or 32, of the left operand. On Hopper four warps may multiply their 64 rows
/// together: the right operand goes from shared memory to the tensor cores, without registers, while the warps do other things.
class TileProducts : public TensorCores {
 protected:
  TileProducts(DType dtype, int64_t features, int parts, bool grouped)
      : TensorCores(dtype),
        padded_(static_cast<int>((features + 15) / 16 * 16)),
        // What is read at once of eight rows comes from different banks: a row begins 16 bytes on, or its 16 bytes i lie at i ^ (row & 7).
        row_bytes_(padded_ * element_ + (grouped ? 0 : 16)),
        parts_(parts),
        grouped_(grouped) {}

  void find_lane(const Reg& thread) {
    lane_ = p_.r("and.b32", thread, 31);
    pair_ = p_.r("shl.b32", p_.r("and.b32", lane_, 3), 1);
    // Of a lane in ldmatrix: rows one after the other in two columns of matrices, or the other way round.
    Reg low = p_.r("and.b32", lane_, 15), eight = p_.r("and.b32", lane_, 7), upper = p_.r("shr.u32", lane_, 4);
    Reg middle = p_.r("and.b32", p_.r("shr.u32", lane_, 3), 1);
    Reg chunk = grouped_ ? p_.r("xor.b32", upper, eight) : upper;
    down_ = p_.r("mad.lo.u32", low, row_bytes_, p_.r("shl.b32", chunk, 4));
    if (grouped_) {
      never_ = p_.p("setp.lt.u32", lane_, 0);
      always_ = p_.p("setp.ge.u32", lane_, 0);
      layout_ = p_.r("mov.u32", kEightRows >> 4 | kSwizzled);
      return;
    }
    across_ = p_.r("mad.lo.u32", p_.r("mad.lo.u32", upper, 8, eight), row_bytes_, p_.r("shl.b32", middle, 4));
    // And of what is a column of the right operand: two rows, two elements of 4 bytes of each.
    pairs_ = p_.r("mad.lo.u32", pair_, row_bytes_, p_.r("shl.b32", p_.r("shr.u32", lane_, 2), 3));
  }

  // 16 of a warp's rows: four registers for each 32 bytes of a row of an operand, or each 8 columns of a result.
  using Part = std::vector<Regs>;
  std::vector<Part> fragments(const Reg& at) {
    std::vector<Part> out(parts_);
    for (int i = 0; i < parts_; ++i)
      for (int k = 0; k < steps_of_row(); ++k) out[i].push_back(fragment(at, i, k));
    return out;
  }
  Regs fragment(const Reg& at, int part, int k) {
    if (grouped_) return matrices(k ? p_.r("xor.b32", at, 32 * k) : at, 0);
    return matrices(at, part * 16 * row_bytes_ + 32 * k);
  }
  // The k-th fragment of a part, or for a group where all of its rows lie.
  using Own = std::function<Regs(int part, int k)>;
  Own held(const std::vector<Part>& all) {
    return [all](int part, int k) { return all[part][k]; };
  }
  Own read_again(const Reg& at) {
    return [=, this](int part, int k) { return fragment(at, part, k); };
  }
  // `at`: the group's first row.
  Own read_by_group(const Reg& at) {
    return [=, this, start = sixteens(at)](int, int k) { return Regs{descriptor(start, 32 * k)}; };
  }
  int steps_of_row() const { return padded_ * element_ / 32; }
  std::vector<Part> unset(int columns) {
    std::vector<Part> out(parts_, Part(columns / 8));
    for (Part& part : out)
      for (Regs& four : part) four = p_.fresh('f', 4);
    return out;
  }
  std::vector<Part> zeros(int columns) {
    std::vector<Part> out = unset(columns);
    for (const Part& part : out)
      for (const Regs& four : part)
        for (const Reg& r : four) p_.op("mov.f32", r, number(0));
    return out;
  }

  // own rows · (`width` rows at `other`)ᵀ; there once it is awaited.
  std::vector<Part> scores(const Own& own, const Reg& other, int width) {
    if (grouped_) return scores_of_group(own, other, width);
    std::vector<Part> out = zeros(width);
    Reg at = p_.r("add.u32", other, across_);
    for (int k = 0; k < steps_of_row(); ++k) {
      std::vector<Regs> a;
      for (int i = 0; i < parts_; ++i) a.push_back(own(i, k));
      for (int n = 0; n < width / 16; ++n) {
        Regs b = matrices(at, n * 16 * row_bytes_ + 32 * k);
        for (int i = 0; i < parts_; ++i) {
          multiply(out[i][2 * n], a[i], b[0], b[1]);
          multiply(out[i][2 * n + 1], a[i], b[2], b[3]);
        }
      }
    }
    return out;
  }
  // sum += weights · (their rows at `other`), once it is awaited.
  void add_rows(const std::vector<Part>& sum, const std::vector<Part>& weights, const Reg& other) {
    if (rounds()) return add_wide_rows(sum, weights, other);
    if (grouped_) return add_rows_of_group(sum[0], weights[0], other);
    Reg at = p_.r("add.u32", other, down_);
    for (int k = 0; k < static_cast<int>(weights[0].size()) / 2; ++k) {
      std::vector<Regs> a;
      for (const Part& w : weights) a.push_back(weights_of(w, k));
      for (int n = 0; n < padded_ / 16; ++n) {
        Regs b = matrices(at, k * 16 * row_bytes_ + 32 * n, true);
        for (int i = 0; i < parts_; ++i) {
          multiply(sum[i][2 * n], a[i], b[0], b[1]);
          multiply(sum[i][2 * n + 1], a[i], b[2], b[3]);
        }
      }
    }
  }
  // sum += (`count` rows at `left`)ᵀ · (those at `right`), by groups alone; the left ones have 64 columns.
  void add_transposed_rows(const std::vector<Part>& sum, const Reg& left, const Reg& right, int count) {
    Regs all = together(sum[0]);
    Reg from = sixteens(left), to = sixteens(right);
    begin_products();
    for (int row = 0; row < count; row += 16) {
      int bytes = row * row_bytes_;
      multiply_group(all, {descriptor(from, bytes)}, descriptor(to, bytes), always_, true, true);
    }
    end_products();
  }
  // sum = Σ (a group's 64 rows at `left[i]`) · (as many rows as the sum has columns, at `right[i]`)ᵀ, by groups alone.
  void set_to_products(const std::vector<Part>& sum, const Regs& left, const Regs& right) {
    Regs all = together(sum[0]);
    std::vector<std::array<Reg, 2>> pairs;
    for (size_t i = 0; i < left.size(); ++i) {
      Reg from = sixteens(left[i]), to = sixteens(right[i]);
      for (int k = 0; k < steps_of_row(); ++k) pairs.push_back({descriptor(from, 32 * k), descriptor(to, 32 * k)});
    }
    begin_products();
    for (const auto& [a, b] : pairs) multiply_group(all, {a}, b, &a == pairs[0].data() ? never_ : always_, false);
    end_products();
  }
  // Until at most the last `behind` of a group's products are under way. Neither their results nor the registers of their operands are touched
  // before that.
  void await(int behind = 0) {
    if (grouped_) p_.op("wgmma.wait_group.sync.aligned", behind);
  }

  // --- by groups ---

  // How the tensor cores find a matrix of rows of 128 bytes: where it begins, in units of 16 bytes, how far each eight rows are from the next
  // eight, and that 16 bytes i of a row lie at i ^ (row & 7). `leading`: how far the next 64 columns are from each 64, where rows are summed over.
  static constexpr int kEightRows = 8 * 128, kSwizzled = 1 << 30;
  Reg sixteens(const Reg& at) { return p_.r("shr.u32", at, 4); }
  Reg descriptor(const Reg& start, int bytes, int leading = 0) {
    int more = bytes / 16 + (leading / 16 << 16);
    return p_.d("mov.b64", braces({more ? p_.r("add.u32", start, more) : start, layout_}));
  }

  void begin_products() { p_.op("wgmma.fence.sync.aligned"); }
  void end_products() { p_.op("wgmma.commit_group.sync.aligned"); }
  // `adds`: to what the sum has; `a`: fragments, or a descriptor; `transposed`: rows of the right operand are what is summed over.
  void multiply_group(const Regs& sum, const Regs& a, const Reg& b, const Reg& adds, bool transposed,
                      bool left_transposed = false) {
    const char* type = dtype_ == DType::Float16 ? "k16.f32.f16.f16" : "k16.f32.bf16.bf16";
    std::string name = str("wgmma.mma_async.sync.aligned.m64n", 2 * sum.size(), type);
    int t = transposed;
    if (a.size() == 1)
      p_.op(name, braces(sum), a[0], b, adds, 1, 1, static_cast<int>(left_transposed), t);
    else
      p_.op(name, braces(sum), braces(a), b, adds, 1, 1, t);
  }

 private:
  // What mma gives as a result has the layout that the next mma wants of its left operand.
  Regs weights_of(const Part& w, int k) {
    Regs out;
    for (int n : {2 * k, 2 * k + 1})
      for (int half : {0, 2}) out.push_back(rounded(w[n][half], w[n][half + 1]));
    return out;
  }
  // Of float32, which ldmatrix does not transpose. The rows are taken in an order in which a lane has its weights already, and the columns in
  // one in which it reads two at once: those of each 16 with an even number are one result's, the others the next one's.
  void add_wide_rows(const std::vector<Part>& sum, const std::vector<Part>& weights, const Reg& other) {
    Reg at = p_.r("add.u32", other, pairs_);
    for (int k = 0; k < static_cast<int>(weights[0].size()); ++k) {
      std::vector<Regs> a;
      for (const Part& w : weights) a.push_back(operands({w[k][0], w[k][2], w[k][1], w[k][3]}));
      for (int n = 0; n < padded_ / 16; ++n) {
        Regs b[2];
        for (int row : {0, 1}) {
          b[row] = p_.fresh('r', 2);
          p_.op("ld.shared.v2.b32", braces(b[row]), str("[", at, "+", (8 * k + row) * row_bytes_ + 64 * n, "]"));
        }
        for (int i = 0; i < parts_; ++i)
          for (int odd : {0, 1}) multiply(sum[i][2 * n + odd], a[i], b[0][odd], b[1][odd]);
      }
    }
  }

  // --- by groups ---

  static Regs together(const Part& part) {
    Regs out;
    for (const Regs& four : part) out.insert(out.end(), four.begin(), four.end());
    return out;
  }
  std::vector<Part> scores_of_group(const Own& own, const Reg& other, int width) {
    std::vector<Part> out = zeros(width);
    Regs sum = together(out[0]);
    Reg start = sixteens(other);
    std::vector<Regs> a;
    Regs b;
    for (int k = 0; k < steps_of_row(); ++k) {
      a.push_back(own(0, k));
      b.push_back(descriptor(start, 32 * k));
    }
    begin_products();
    for (int k = 0; k < steps_of_row(); ++k) multiply_group(sum, a[k], b[k], k ? always_ : never_, false);
    end_products();
    return out;
  }
  void add_rows_of_group(const Part& sum, const Part& weights, const Reg& other) {
    Regs all = together(sum);
    Reg start = sixteens(other);
    std::vector<Regs> a;
    Regs b;
    for (int k = 0; k < static_cast<int>(weights.size()) / 2; ++k) {
      a.push_back(weights_of(weights, k));
      b.push_back(descriptor(start, 16 * row_bytes_ * k));
    }
    begin_products();
    for (size_t k = 0; k < a.size(); ++k) multiply_group(all, a[k], b[k], always_, true);
    end_products();
  }

 protected:
  int padded_, row_bytes_;
  int parts_;     // of a warp: 16 rows each
  bool grouped_;  // four warps multiply together
  Reg lane_, pair_, down_, across_, pairs_;
  Reg never_, always_;  // conditions, of groups

 private:
  Reg layout_;
};

}  // namespace brasa::runtime::cuda
