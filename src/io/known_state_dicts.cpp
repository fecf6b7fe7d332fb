#include <brasa/state_dict.h>

// The names of well-known libraries' models.
namespace brasa::io {

NameRules transformers_vit() {
  return {
      rename("vit.**", "**"),
      rename("embeddings.cls_token", "cls_token"),
      rename("embeddings.position_embeddings", "pos_embed"),
      rename("embeddings.patch_embeddings.projection.*", "patch_embed.proj.*"),
      drop("pooler.dense.*"),
      // Names of files as those of its modules.
      rename("encoder.layer.**", "layers.**"),
      rename("layers.*.attention.attention.query.*", "layers.*.attention.q_proj.*"),
      rename("layers.*.attention.attention.key.*", "layers.*.attention.k_proj.*"),
      rename("layers.*.attention.attention.value.*", "layers.*.attention.v_proj.*"),
      rename("layers.*.attention.output.dense.*", "layers.*.attention.o_proj.*"),
      rename("layers.*.intermediate.dense.*", "layers.*.mlp.fc1.*"),
      rename("layers.*.output.dense.*", "layers.*.mlp.fc2.*"),

      join({"layers.*.attention.q_proj.*", "layers.*.attention.k_proj.*", "layers.*.attention.v_proj.*"},
           "blocks.*.attn.qkv.*"),
      rename("layers.*.attention.o_proj.*", "blocks.*.attn.proj.*"),
      rename("layers.*.layernorm_before.*", "blocks.*.norm1.*"),
      rename("layers.*.layernorm_after.*", "blocks.*.norm2.*"),
      rename("layers.*.mlp.*.*", "blocks.*.mlp.*.*"),
      rename("layernorm.*", "norm.*"),
      rename("classifier.*", "head.*"),
  };
}

NameRules transformers_gpt2() {
  return {
      rename("transformer.**", "**"),   drop("h.*.attn.bias"),           drop("h.*.attn.masked_bias"),
      transpose("h.*.attn.c_*.weight"), transpose("h.*.mlp.c_*.weight"),
  };
}

NameRules transformers_bert() {
  return {
      rename("bert.**", "**"),
      drop("embeddings.position_ids"),
      // Of the first files, whose norms were TensorFlow's.
      rename("**.LayerNorm.gamma", "**.LayerNorm.weight"),
      rename("**.LayerNorm.beta", "**.LayerNorm.bias"),

      join({"encoder.layer.*.attention.self.query.*", "encoder.layer.*.attention.self.key.*",
            "encoder.layer.*.attention.self.value.*"},
           "encoder.layers.*.self_attn.in_proj_*"),
      rename("encoder.layer.*.attention.output.dense.*", "encoder.layers.*.self_attn.out_proj.*"),
      rename("encoder.layer.*.attention.output.LayerNorm.*", "encoder.layers.*.norm1.*"),
      rename("encoder.layer.*.intermediate.dense.*", "encoder.layers.*.linear1.*"),
      rename("encoder.layer.*.output.dense.*", "encoder.layers.*.linear2.*"),
      rename("encoder.layer.*.output.LayerNorm.*", "encoder.layers.*.norm2.*"),
  };
}

}  // namespace brasa::io
