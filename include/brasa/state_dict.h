#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <brasa/serialize.h>
#include <brasa/tensor.h>

/// Checkpoints of other libraries in the modules of a C++ program: rules give the tensors other names and forms, and a module takes them.
///
///     io::load_state_dict(vit, map_tensors("model.safetensors"), io::transformers_vit());
namespace brasa::io {

/// One change of a state dictionary. Patterns are whole names, in which `*` stands for any text without a dot and `**` for any text. The
/// texts that they stand for take the place of the `*` and `**` of the new names, in their order.
struct NameRule {
  enum class Kind : uint8_t { Rename, Copy, Drop, Transpose, Join, Split };
  Kind kind;
  std::vector<std::string> from, to;
  int64_t dim = 0;
};
/// Each rule is applied in turn to what the rules before it made; tensors that no pattern names stay.
using NameRules = std::vector<NameRule>;

// brasa::Error for patterns that have another number of wildcards than the new names.
BRASA_API NameRule rename(std::string from, std::string to);
/// The same tensor under a second name: for weights that are tied in the file's model.
BRASA_API NameRule copy(std::string from, std::string to);
BRASA_API NameRule drop(std::string name);
/// Of matrices: Conv1D of GPT-2 keeps those of linear layers as [in, out].
BRASA_API NameRule transpose(std::string name);
/// Query, key and value become one packed tensor, along `dim`.
BRASA_API NameRule join(std::vector<std::string> from, std::string to, int64_t dim = 0);
/// One tensor becomes parts of equal size.
BRASA_API NameRule split(std::string from, std::vector<std::string> to, int64_t dim = 0);

/// The tensors after all rules. Those that are only renamed, transposed or split share the memory of what was given. brasa::Error where two tensors
/// get one name, where a part is missing, or where a tensor does not have the form that a rule needs.
BRASA_API TensorDict apply_rules(TensorDict tensors, const NameRules& rules);

/// transformers' ViT -> timm's names: query, key and value are one `blocks.*.attn.qkv`. Its models' state_dict() and its files, whose names differ.
BRASA_API NameRules transformers_vit();
/// transformers' GPT-2 without its prefix, with the weights of Conv1D as those of nn::Linear, without the masks of old files.
BRASA_API NameRules transformers_gpt2();
/// transformers' BERT -> `embeddings`, `encoder.layers.*` as nn::TransformerEncoder names them, and `pooler`.
BRASA_API NameRules transformers_bert();

struct LoadedStateDict {
  std::vector<std::string> missing;     ///< of the module, without a tensor in the file
  std::vector<std::string> unexpected;  ///< of the file, without a place in the module
};

/// Copies the values into the tensors of the same names, which keep their dtypes and devices. brasa::Error, before anything is changed, that lists all tensors
/// of other sizes, and if `strict` all missing and all unexpected names.
BRASA_API LoadedStateDict assign(const TensorDict& to, const TensorDict& tensors, bool strict = true);

/// The parameters and buffers of a module take the tensors, after the rules.
template <class M>
LoadedStateDict load_state_dict(M& module, TensorDict tensors, const NameRules& rules = {}, bool strict = true) {
  if constexpr (requires { module->named_parameters(); }) {
    return load_state_dict(*module, std::move(tensors), rules, strict);
  } else {
    TensorDict to;
    for (const auto& item : module.named_parameters()) to.emplace(item.key(), item.value());
    for (const auto& item : module.named_buffers()) to.emplace(item.key(), item.value());
    return assign(to, apply_rules(std::move(tensors), rules), strict);
  }
}

}  // namespace brasa::io
