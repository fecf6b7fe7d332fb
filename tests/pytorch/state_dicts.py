#!/usr/bin/env python3
"""Writes small models of timm and transformers as these libraries save them, and a call of each, for tests/state_dicts.

    tests/pytorch/state_dicts.py FOLDER

NAME.safetensors or NAME.pth has the weights, NAME.call.safetensors the tensors `input` and `output`.
"""
import pathlib
import sys
import tempfile

import timm
import torch
import transformers
from safetensors.torch import save_file

torch.manual_seed(1)


def randomised(model):
    """With no weights that hide an error, as zeros and ones would."""
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.3)
    return model.eval()


def saved(model, path):
    """The file that users of transformers have: its names are not always those of state_dict()."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        pathlib.Path(folder, "model.safetensors").rename(path)


def vit_config():
    return transformers.ViTConfig(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=8,
                                  patch_size=4, layer_norm_eps=1e-6, num_labels=5)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    image, tokens = torch.rand(2, 3, 8, 8), torch.randint(0, 32, (2, 6))

    def call(name, x, y):
        save_file({"input": x, "output": y.detach().contiguous()}, folder / f"{name}.call.safetensors")

    vit = randomised(timm.models.vision_transformer.VisionTransformer(
        img_size=8, patch_size=4, embed_dim=8, depth=2, num_heads=2, num_classes=5))
    torch.save(vit.state_dict(), folder / "vit_timm.pth")
    call("vit_timm", image, vit(image))

    vit = randomised(transformers.ViTForImageClassification(vit_config()))
    saved(vit, folder / "vit_transformers.safetensors")
    torch.save(vit.state_dict(), folder / "vit_transformers.pth")
    call("vit_transformers", image, vit(image).logits)

    gpt = randomised(transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_embd=8, n_layer=2, n_head=2, vocab_size=32, n_positions=12, bos_token_id=0, eos_token_id=0)))
    saved(gpt, folder / "gpt2.safetensors")
    call("gpt2", tokens, gpt(tokens).logits)

    bert = randomised(transformers.BertModel(transformers.BertConfig(
        hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, vocab_size=32,
        max_position_embeddings=12, layer_norm_eps=1e-5)))
    saved(bert, folder / "bert.safetensors")
    call("bert", tokens, bert(tokens).last_hidden_state)


main(pathlib.Path(sys.argv[1]))
