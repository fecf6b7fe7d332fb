#include <brasa/brasa.h>
#include <brasa/tokenizer.h>

#include <algorithm>

#include "support/error.h"
#include "text/pipeline.h"

namespace brasa::text {
namespace {

// Texts as rows of one length.
Batch padded(const std::vector<Encoding>& rows, const Pipeline& pipeline, const EncodeOptions& options) {
  BRASA_CHECK(options.multiple_of >= 1, "encode: the padded length is a multiple of 1 or more, got ",
              options.multiple_of);
  size_t length = 0;
  bool same = true;
  for (const Encoding& row : rows) {
    same = same && row.ids.size() == rows[0].ids.size();
    length = std::max(length, row.ids.size());
  }
  if (options.padding == Padding::MaxLength) {
    BRASA_CHECK(options.max_length, "encode: padding to max_length without a max_length");
    length = std::max(length, static_cast<size_t>(*options.max_length));
  }
  if (options.padding == Padding::None) {
    BRASA_CHECK(same, "encode: the texts have different lengths; without padding they make no tensor");
  } else {
    auto step = static_cast<size_t>(options.multiple_of);
    length = (length + step - 1) / step * step;
  }
  int64_t pad = 0;
  if (std::any_of(rows.begin(), rows.end(), [&](const Encoding& r) { return r.ids.size() < length; })) {
    std::optional<std::string> token = options.pad_token ? options.pad_token : pipeline.pad_token;
    BRASA_CHECK(token, "encode: the tokenizer has no token for padding; say which by pad_token");
    auto id = pipeline.vocabulary.id_of(*token);
    BRASA_CHECK(id, "encode: the token for padding, '", *token, "', is not in the vocabulary");
    pad = *id;
  }
  std::vector<int64_t> sizes{static_cast<int64_t>(rows.size()), static_cast<int64_t>(length)};
  TensorOptions on_host = TensorOptions(kInt64).device(kCPU);
  Batch out{full(sizes, pad, on_host), zeros(sizes, on_host), zeros(sizes, on_host)};
  auto *ids = out.input_ids.data_ptr<int64_t>(), *mask = out.attention_mask.data_ptr<int64_t>(),
       *types = out.token_type_ids.data_ptr<int64_t>();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Encoding& row = rows[i];
    size_t begin = i * length + (options.padding_side == Side::Left ? length - row.ids.size() : 0);
    std::copy(row.ids.begin(), row.ids.end(), ids + begin);
    std::copy(row.type_ids.begin(), row.type_ids.end(), types + begin);
    std::fill_n(mask + begin, row.ids.size(), 1);
  }
  return out;
}

}  // namespace

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return pipeline_->encode(text, nullptr, options);
}
Encoding Tokenizer::encode(std::string_view first, std::string_view second, const EncodeOptions& options) const {
  return pipeline_->encode(first, &second, options);
}

Batch Tokenizer::encode_batch(std::span<const std::string> texts, const EncodeOptions& options) const {
  std::vector<Encoding> rows;
  for (const std::string& text : texts) rows.push_back(encode(text, options));
  return padded(rows, *pipeline_, options);
}
Batch Tokenizer::encode_batch(std::span<const std::string> first, std::span<const std::string> second,
                              const EncodeOptions& options) const {
  BRASA_CHECK(first.size() == second.size(), "encode: ", first.size(), " first texts, but ", second.size(),
              " second ones");
  std::vector<Encoding> rows;
  for (size_t i = 0; i < first.size(); ++i) rows.push_back(encode(first[i], second[i], options));
  return padded(rows, *pipeline_, options);
}

std::string Tokenizer::decode(IntArrayRef ids, bool skip_special_tokens) const {
  return pipeline_->decode(ids, skip_special_tokens);
}
std::string Tokenizer::decode(const Tensor& ids, bool skip_special_tokens) const {
  BRASA_CHECK(ids.dim() == 1 && is_integral(ids.scalar_type()), "decode: expected integers in one dimension, got ",
              name(ids.scalar_type()), " ", ids.sizes().vec());
  Tensor row = ids.detach().to(kInt64).cpu().contiguous();
  return decode(IntArrayRef(row.data_ptr<int64_t>(), static_cast<size_t>(row.numel())), skip_special_tokens);
}

int64_t Tokenizer::size() const { return pipeline_->vocabulary.size(); }
std::optional<int64_t> Tokenizer::id_of(std::string_view token) const { return pipeline_->vocabulary.id_of(token); }
const std::string& Tokenizer::token_of(int64_t id) const {
  const std::string* token = pipeline_->vocabulary.token_of(id);
  BRASA_CHECK(token, "there is no token with the number ", id);
  return *token;
}

}  // namespace brasa::text
