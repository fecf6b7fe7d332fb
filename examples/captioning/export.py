"""Writes a captioner of transformers for example-captioning: encoder.pt2, step.pt2 and captioner.json, into a folder.

    python export.py FOLDER [--model nlpconnect/vit-gpt2-image-captioning] [--tokens 20] [--photograph x.jpg ...]

The model is a VisionEncoderDecoderModel with a GPT-2 decoder: a folder or a name that transformers finds, or without --model a small
one with random weights. Of each photograph the tokens that transformers itself generates are kept in captioner.json."""
import argparse
import json
import pathlib

import torch
from transformers import DynamicCache, EncoderDecoderCache, GPT2Config, VisionEncoderDecoderConfig, VisionEncoderDecoderModel, ViTConfig

BEAMS = (1, 4)


def small_model():
    torch.manual_seed(3)
    encoder = ViTConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64, image_size=32,
                        patch_size=8, initializer_range=0.3)
    decoder = GPT2Config(vocab_size=100, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=98, eos_token_id=71,
                         initializer_range=0.3, add_cross_attention=True, is_decoder=True)
    return VisionEncoderDecoderModel(config=VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder))


class Encoder(torch.nn.Module):
    """Image to the keys and values of each layer's cross attention, [1, 2 * layers, heads, patches, features], which all steps read."""

    def __init__(self, model):
        super().__init__()
        self.encoder = model.encoder
        self.projection = getattr(model, "enc_to_dec_proj", torch.nn.Identity())
        blocks = model.decoder.transformer.h
        self.head_dim = blocks[0].crossattention.head_dim
        self.keys_and_values = torch.nn.ModuleList(block.crossattention.c_attn for block in blocks)

    def forward(self, image):
        states = self.projection(self.encoder(pixel_values=image).last_hidden_state)
        pairs = [part.unflatten(2, (-1, self.head_dim)).transpose(1, 2)
                 for layer in self.keys_and_values for part in layer(states).chunk(2, dim=2)]
        return torch.stack(pairs, dim=1)


class Step(torch.nn.Module):
    """The next token's logits for each beam. The cache, [beams, 2 * layers, heads, tokens, features], is a window that moves on by one:
    its newest keys are last, and those of a sequence that has just begun are masked."""

    def __init__(self, model):
        super().__init__()
        self.decoder = model.decoder

    def forward(self, tokens, position, cache, memory):
        seen, crossed = DynamicCache(), DynamicCache()
        for layer in range(cache.shape[1] // 2):
            seen.update(cache[:, 2 * layer], cache[:, 2 * layer + 1], layer)
            crossed.update(memory[:, 2 * layer], memory[:, 2 * layer + 1], layer)
        window = cache.shape[3]
        masked = torch.arange(window + 1) < window - position
        mask = torch.zeros(window + 1).masked_fill(masked, torch.finfo(torch.float32).min)
        out = self.decoder(
            input_ids=tokens[:, None], position_ids=position[None, None], attention_mask=mask[None, None, None],
            cache=EncoderDecoderCache(seen, crossed), use_cache=True,
            # Its values are in `memory`; that there are any says that layers attend to them.
            encoder_hidden_states=torch.zeros(tokens.shape[0], memory.shape[3], self.decoder.config.n_embd))
        pairs = [part[:, :, 1:] for layer in out.cache.self_attention_cache.layers for part in (layer.keys, layer.values)]
        return out.logits[:, 0], torch.stack(pairs, dim=1)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("folder", type=pathlib.Path)
    args.add_argument("--model", help="a folder or a name; otherwise a small one with random weights")
    args.add_argument("--tokens", type=int, default=20, help="how many a caption has at most")
    args.add_argument("--photograph", type=pathlib.Path, nargs="*", default=[])
    args = args.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    model = VisionEncoderDecoderModel.from_pretrained(args.model) if args.model else small_model()
    model.eval()
    decoder, side = model.decoder.config, model.encoder.config.image_size
    start = getattr(model.config, "decoder_start_token_id", None) or decoder.bos_token_id
    mean = std = [0.5, 0.5, 0.5]  # of transformers' ViTImageProcessor

    with torch.no_grad():
        image = torch.rand(1, 3, side, side)
        encoder = Encoder(model).eval()
        memory = encoder(image)
        torch.export.save(torch.export.export(encoder, (image,)), args.folder / "encoder.pt2")
        cache = torch.randn(2, 2 * decoder.n_layer, decoder.n_head, args.tokens, decoder.n_embd // decoder.n_head)
        beams = torch.export.Dim("beams", min=1, max=16)
        program = torch.export.export(Step(model).eval(), (torch.tensor([1, 2]), torch.tensor(3), cache, memory),
                                      dynamic_shapes=({0: beams}, None, {0: beams}, None))
        torch.export.save(program, args.folder / "step.pt2")

        captions = {}
        for path in args.photograph:
            from torchvision.io import ImageReadMode, decode_image
            from torchvision.transforms.v2 import functional as F
            x = F.resize(decode_image(str(path), mode=ImageReadMode.RGB), [side, side], antialias=True)
            x = F.normalize(x.float() / 255, mean, std)[None]
            captions[path.name] = {
                str(n): model.generate(x, num_beams=n, do_sample=False, max_new_tokens=args.tokens, decoder_start_token_id=start,
                                       eos_token_id=decoder.eos_token_id, pad_token_id=decoder.eos_token_id)[0, 1:].tolist()
                for n in BEAMS}
    card = {"mean": mean, "std": std, "start": start, "end": decoder.eos_token_id, "tokens": args.tokens, "captions": captions}
    (args.folder / "captioner.json").write_text(json.dumps(card) + "\n")


if __name__ == "__main__":
    main()
