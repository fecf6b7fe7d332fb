"""Models of libraries, small, with random weights."""
import torch
from case import Case, calls, calls_with
from torch.export import Dim

CASES = []
# Gradients that differ between float32 and float64 in PyTorch itself.
ILL_CONDITIONED = ("dla46_c", "xcit_nano_12_p16_224")


def image(*sizes):
    return lambda: torch.randn(*sizes)


def timm_model(name, size=64, **options):
    import timm

    kwargs = options.pop("kwargs", {})
    CASES.append(Case("timm_" + name, lambda: timm.create_model(name, pretrained=False, num_classes=10, **kwargs), calls(image(1, 3, size, size)), gradients=name not in ILL_CONDITIONED, atol=1e-4, rtol=1e-3, **options))


def vision_model(name, size=64, **kwargs):
    import torchvision

    CASES.append(Case("torchvision_" + name, lambda: torchvision.models.get_model(name, weights=None, **kwargs), calls(image(1, 3, size, size)), atol=1e-4, rtol=1e-3))


def text_model(name, cls, config, inputs, **options):
    import transformers

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            c = getattr(transformers, config[0])(**config[1])
            c._attn_implementation = options.get("attention", "sdpa")
            self.model = getattr(transformers, cls)(c)

        def forward(self, **kwargs):
            out = self.model(**kwargs, use_cache=False) if options.get("use_cache", True) else self.model(**kwargs)
            return tuple(v for v in out.to_tuple() if isinstance(v, torch.Tensor))

    CASES.append(Case("transformers_" + name, Wrapped, calls_with(lambda: ((), inputs())), atol=1e-4, rtol=1e-3, dynamic=options.get("dynamic")))


for name, kwargs in {
    "resnet10t": {},
    "mobilenetv3_small_050": {},
    "efficientnet_lite0": {},
    "regnetx_002": {},
    "test_vit": {},
    "test_efficientnet": {},
    "test_convnext": {},
    "test_byobnet": {},
    "test_resnet": {},
    "ghostnet_050": {},
    "mobilevitv2_050": {},
    "lcnet_035": {},
    "edgenext_xx_small": {},
    "levit_128s": {},
    "poolformer_s12": {},
    "repvgg_a0": {},
    "dla46_c": {},
    "ese_vovnet19b_slim_dw": {},
}.items():
    timm_model(name, 224 if name == "levit_128s" else 160 if name.startswith("test_") else 64, kwargs=kwargs)
timm_model("deit_tiny_patch16_224", 64, kwargs={"img_size": 64, "depth": 2})
timm_model("swin_tiny_patch4_window7_224", 56, kwargs={"img_size": 56, "depths": (1, 1), "num_heads": (2, 2), "embed_dim": 16})
timm_model("mixer_s32_224", 64, kwargs={"img_size": 64})
timm_model("xcit_nano_12_p16_224", 64, kwargs={"img_size": 64, "depth": 2})
timm_model("eva02_tiny_patch14_224", 56, kwargs={"img_size": 56, "depth": 2})
timm_model("maxvit_rmlp_pico_rw_256", 256, kwargs={})
for name in ["shufflenet_v2_x0_5", "mnasnet0_5", "squeezenet1_1", "densenet121", "googlenet", "alexnet", "mobilenet_v3_small", "efficientnet_b0", "swin_v2_t"]:
    vision_model(name, 64 if name not in ("alexnet",) else 96)
vision_model("lraspp_mobilenet_v3_large", 64, weights_backbone=None)
vision_model("deeplabv3_mobilenet_v3_large", 64, weights_backbone=None)

ids = lambda b=1, n=6: {"input_ids": torch.randint(0, 90, (b, n)), "attention_mask": torch.ones(b, n, dtype=torch.int64)}
small = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37)
text_model("bert", "BertForMaskedLM", ("BertConfig", small), ids)
text_model("roberta", "RobertaForSequenceClassification", ("RobertaConfig", small | dict(max_position_embeddings=40)), ids)
text_model("distilbert", "DistilBertModel", ("DistilBertConfig", dict(vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=37)), ids, use_cache=False)
text_model("electra", "ElectraForTokenClassification", ("ElectraConfig", small | dict(embedding_size=16)), ids, use_cache=False)
text_model("deberta", "DebertaV2Model", ("DebertaV2Config", small | dict(relative_attention=True, pos_att_type=["p2c", "c2p"])), ids, use_cache=False, attention="eager")
text_model("gpt2", "GPT2LMHeadModel", ("GPT2Config", dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4)), ids)
text_model("gpt_neo", "GPTNeoForCausalLM", ("GPTNeoConfig", dict(vocab_size=99, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]])), ids, attention="eager")
text_model("llama", "LlamaForCausalLM", ("LlamaConfig", small | dict(num_key_value_heads=2)), ids)
text_model("mistral", "MistralForCausalLM", ("MistralConfig", small | dict(num_key_value_heads=2, sliding_window=4)), ids)
text_model("qwen2", "Qwen2ForCausalLM", ("Qwen2Config", small | dict(num_key_value_heads=2)), ids)
text_model("gemma", "GemmaForCausalLM", ("GemmaConfig", small | dict(num_key_value_heads=1, head_dim=8)), ids)
text_model("mixtral", "MixtralForCausalLM", ("MixtralConfig", small | dict(num_key_value_heads=2, num_local_experts=4)), ids)
text_model("opt", "OPTForCausalLM", ("OPTConfig", dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=37, word_embed_proj_dim=32)), ids)
text_model("bloom", "BloomForCausalLM", ("BloomConfig", dict(vocab_size=99, hidden_size=32, n_layer=2, n_head=4)), ids, attention="eager")
text_model("t5", "T5ForConditionalGeneration", ("T5Config", dict(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4)), lambda: ids() | {"decoder_input_ids": torch.randint(0, 90, (1, 4))}, attention="eager")
text_model("bart", "BartForConditionalGeneration", ("BartConfig", dict(vocab_size=99, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37)), lambda: ids() | {"decoder_input_ids": torch.randint(0, 90, (1, 4))})
text_model("vit", "ViTForImageClassification", ("ViTConfig", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, image_size=32, patch_size=8)), lambda: {"pixel_values": torch.randn(1, 3, 32, 32)}, use_cache=False)
text_model("clip", "CLIPModel", ("CLIPConfig", dict(text_config=small | dict(eos_token_id=98), vision_config=dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, image_size=32, patch_size=8))), lambda: ids() | {"pixel_values": torch.randn(1, 3, 32, 32)}, use_cache=False)
text_model("wav2vec2", "Wav2Vec2Model", ("Wav2Vec2Config", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, conv_dim=(16, 16), conv_kernel=(8, 3), conv_stride=(4, 2), num_feat_extract_layers=2, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2)), lambda: {"input_values": torch.randn(1, 400)}, use_cache=False)
text_model("whisper", "WhisperModel", ("WhisperConfig", dict(vocab_size=99, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, num_mel_bins=8, max_source_positions=20, pad_token_id=0, decoder_start_token_id=1, bos_token_id=1, eos_token_id=2)), lambda: {"input_features": torch.randn(1, 8, 40), "decoder_input_ids": torch.randint(0, 90, (1, 4))})
text_model("mamba", "MambaForCausalLM", ("MambaConfig", dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4)), lambda: {"input_ids": torch.randint(0, 90, (1, 6))})
text_model("convnext", "ConvNextModel", ("ConvNextConfig", dict(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)), lambda: {"pixel_values": torch.randn(1, 3, 32, 32)}, use_cache=False)
text_model("segformer", "SegformerForSemanticSegmentation", ("SegformerConfig", dict(hidden_sizes=[16, 16], depths=[1, 1], num_encoder_blocks=2, num_attention_heads=[2, 2], sr_ratios=[2, 1], patch_sizes=[7, 3], strides=[4, 2], mlp_ratios=[2, 2], decoder_hidden_size=16)), lambda: {"pixel_values": torch.randn(1, 3, 32, 32)}, use_cache=False)
