#!/usr/bin/env python3
"""Writes exported programs of models drawn at random from timm, torchvision and transformers, as `brasa verify models` reads them.

    tests/pytorch/drawn.py FOLDER --seed 1 --count 60 [--gradients] [--only NAME …]

A third of them has sizes that vary, half of them is exported strictly. A draw counts when PyTorch itself makes the model, runs it and exports it;
what it could not is printed and another one is drawn. Models are small and have random weights. Each is made in a process of its own, with a
limit of time. With --gradients the gradients of a loss are stored, too.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import random
import resource
import warnings

import torch

import archives
from case import Case

# What makes a configuration of transformers small, where it has a field of this name.
SMALL = {
    "vocab_size": 99, "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embed_dim": 32, "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2,
    "num_layers": 2, "encoder_layers": 2, "decoder_layers": 2, "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 40, "ffn_dim": 40, "d_ff": 40,
    "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "n_inner": 40, "hidden_dim": 40, "head_dim": 8, "d_kv": 8, "image_size": 32, "patch_size": 8,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_group": 1,
    "topk_group": 1, "max_position_embeddings": 64, "n_positions": 64, "embedding_size": 16, "max_source_positions": 20, "num_mel_bins": 8,
    "projection_dim": 16, "num_labels": 3, "q_lora_rank": 8, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8,
    "expert_ffn_hidden_size": 16, "ffn_hidden_size": 40, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2, "state_size": 4,
    "word_embed_proj_dim": 32, "encoder_hidden_dim": 32, "rnn_hidden_size": 32, "attention_hidden_size": 32, "shared_expert_intermediate_size": 16,
    "prediction_length": 4, "context_length": 8,
}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "sep_token_id": 2, "cls_token_id": 1, "mask_token_id": 3}


def shrink(config):
    for name, value in (SMALL | TOKENS).items():
        if isinstance(getattr(config, name, None), int) or (name in TOKENS and hasattr(config, name)):
            try:
                setattr(config, name, value)
            except Exception:
                pass
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:2]
    for name in ("text_config", "vision_config", "audio_config", "encoder", "decoder"):
        part = getattr(config, name, None)
        if part is not None and hasattr(part, "to_dict"):
            shrink(part)
    return config


class Outputs(torch.nn.Module):
    """The tensors among a model's results."""

    def __init__(self, model, **fixed):
        super().__init__()
        self.model, self.fixed = model, fixed

    def forward(self, **inputs):
        out = self.model(**inputs, **self.fixed)
        return tuple(v for v in out.to_tuple() if isinstance(v, torch.Tensor))


def transformers_case(name, chance):
    import inspect

    import transformers

    config = shrink(transformers.CONFIG_MAPPING[name]())
    heads = [m for m in (transformers.MODEL_MAPPING, transformers.MODEL_FOR_CAUSAL_LM_MAPPING, transformers.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING,
                         transformers.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING) if type(config) in m]
    cls = chance.choice(heads)[type(config)]
    cls = cls[0] if isinstance(cls, (list, tuple)) else cls
    attention = chance.choice(["sdpa", "eager"])

    def build():
        config._attn_implementation = attention
        try:
            model = cls(config)
        except ValueError:  # it has no other attention than its own
            config._attn_implementation = "eager"
            model = cls(config)
        takes = inspect.signature(model.forward).parameters
        return Outputs(model, **({"use_cache": False} if "use_cache" in takes else {}))

    def make(batch, length):
        model = build_once().model
        takes, out = inspect.signature(model.forward).parameters, {}
        ids = lambda n: torch.randint(4, 90, (batch, n))
        if "input_ids" in takes:
            out["input_ids"] = ids(length)
            if "attention_mask" in takes:
                out["attention_mask"] = torch.ones(batch, length, dtype=torch.int64)
        if "pixel_values" in takes:
            side = config.image_size if isinstance(getattr(config, "image_size", None), int) else getattr(getattr(config, "vision_config", None), "image_size", 64)
            out["pixel_values"] = torch.randn(batch, getattr(config, "num_channels", 3), side, side)
        if "input_features" in takes:
            out["input_features"] = torch.randn(batch, 8, 40)
        if "input_values" in takes:
            out["input_values"] = torch.randn(batch, 800)
        if "decoder_input_ids" in takes:
            out["decoder_input_ids"] = ids(4)
        return out

    kept = []

    def build_once():
        if not kept:
            kept.append(build())
        return kept[0]

    text = lambda out: "input_ids" in out and set(out) <= {"input_ids", "attention_mask"}
    return build_once, make, text


def timm_case(family, chance):
    import timm

    name = chance.choice(timm.list_models(module=family))

    def build():
        return timm.create_model(name, pretrained=False, num_classes=7)

    kept = []

    def once():
        if not kept:
            kept.append(build())
        return kept[0]

    def size():
        config = once().pretrained_cfg
        return config["input_size"][-1] if config.get("fixed_input_size") or config["input_size"][-1] < 96 else 96

    return once, lambda batch, length: (torch.randn(batch, 3, size(), size()),), lambda out: False


def torchvision_case(name, chance):
    import torchvision

    kept = []

    def once():
        if not kept:
            options = {"weights_backbone": None} if "backbone" in name or name.split("_")[0] in ("deeplabv3", "fcn", "lraspp") else {}
            kept.append(torchvision.models.get_model(name, weights=None, **options))
        return kept[0]

    size = 224 if name.startswith(("vit", "maxvit")) else 96
    video = name.startswith(("r3d", "mc3", "r2plus1d", "s3d", "swin3d", "mvit"))
    shape = (3, 16, 64, 64) if video else (3, size, size)
    return once, lambda batch, length: (torch.randn(batch, *shape),), lambda out: False


def write(kind, name, number, seed, folder, gradients):
    chance = random.Random(f"{seed} {number}")
    dynamic, strict = chance.random() < 1 / 3, chance.random() < 0.5
    build, make, is_text = {"transformers": transformers_case, "timm": timm_case, "torchvision": torchvision_case}[kind](name, chance)
    torch.manual_seed(number)
    module = build().eval()
    first = make(2, 8)
    as_call = lambda v: ((), v) if isinstance(v, dict) else (v, {})
    shapes = None
    if dynamic:
        batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=2, max=32)
        dims = lambda key: {0: batch, 1: length} if is_text(first) else {0: batch}
        shapes = {"inputs": {k: dims(k) for k in first}} if isinstance(first, dict) else tuple({0: batch} for _ in first)
    count = sum(p.numel() for p in module.parameters())
    if count > 30e6:
        raise ValueError(f"{count / 1e6:.0f} million parameters")
    sets = [as_call(first)] + ([as_call(make(3, 5 if is_text(first) else 8)), as_call(make(1, 6 if is_text(first) else 8))] if dynamic else [])
    case = Case(f"{kind}_{name}", lambda: module, lambda m: sets, dynamic=shapes, gradients=gradients, rtol=1e-3, atol=1e-4)
    with torch.set_grad_enabled(gradients):
        module(*sets[0][0], **sets[0][1])
        archives.write(case, folder, strict=strict)
    return f"{count} parameters, {'dynamic' if dynamic else 'static'}, {'strict' if strict else 'not strict'}"


def in_child(arguments, pipe):
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        pipe.send((True, write(*arguments)))
    except BaseException as e:
        pipe.send((False, f"{type(e).__name__}: {' '.join(str(e).split())[:160]}"))


def tried(arguments, seconds):
    here, there = multiprocessing.Pipe(False)
    child = multiprocessing.Process(target=in_child, args=(arguments, there))
    child.start()
    answer = here.recv() if here.poll(seconds) else (False, f"more than {seconds} seconds")
    child.kill()
    child.join()
    return answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--only", nargs="*", help="names of cases, as they are printed")
    options = parser.parse_args()
    import timm
    import torchvision
    import transformers

    torchvision.models.list_models()
    names = [("transformers", n) for n in transformers.CONFIG_MAPPING.keys()]
    names += [("timm", m) for m in timm.list_modules()] + [("torchvision", n) for n in torchvision.models.list_models(module=torchvision.models)]
    print(f"seed {options.seed}, among {len(names)}", flush=True)
    random.Random(options.seed).shuffle(names)
    options.folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for number, (kind, name) in enumerate(names):
        if written == options.count:
            break
        if options.only and f"{kind}_{name}" not in options.only:
            continue
        ok, what = tried((kind, name, number, options.seed, options.folder, options.gradients), options.seconds)
        written += ok
        print(f"{kind}_{name}: {'' if ok else 'NOT WRITTEN '}{what}", flush=True)
        if not ok:
            for file in options.folder.glob(f"{kind}_{name}.*"):
                file.unlink()
    print(f"{written} written")


if __name__ == "__main__":
    main()
