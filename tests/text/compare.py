#!/usr/bin/env python3
"""Compares Brasa's tokenizers with the libraries `tokenizers` and `transformers` on random texts.

    tests/text/compare.py BRASA FOLDER [--seed S] [--count N]

BRASA is the command `brasa`. Vocabularies are trained on the project's own texts and on lines in several languages, and written to FOLDER as the files of GPT-2 and BERT
and as `tokenizer.json`. Each text is encoded alone, and with the next one as a pair that is cut; what comes out is decoded. Python and Brasa must agree in every number and
letter.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import unicodedata

import tokenizers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LINES = """
Ein Vogel saß auf dem Dach und sang ein Lied über den Frühling. Où est la bibliothèque ? Elle est à côté du café.
¿Dónde está el niño? El niño está en el jardín con su abuela. Il gatto dorme sul divano; perché no?
Кошка спит на диване, а собака бежит по двору. Сколько сейчас времени? Уже половина восьмого.
Η γάτα κοιμάται και ο σκύλος τρέχει στην αυλή. Kočka spí a pes běží, žluťoučký kůň úpěl ďábelské ódy.
猫は眠っています。犬は庭を走っています。今日は天気がいいですね。 고양이가 자고 있습니다. 개가 마당에서 뛰고 있습니다.
小猫在睡觉,小狗在院子里跑。今天的天气很好,我们去公园吧! القطة نائمة والكلب يركض في الحديقة. החתול ישן והכלב רץ בחצר.
बिल्ली सो रही है और कुत्ता दौड़ रहा है। แมวกำลังนอนหลับ และสุนัขกำลังวิ่ง Con mèo đang ngủ, con chó đang chạy ngoài sân.
I'll say it's what they've wanted, don't you? We're sure she'd come; I'm not. 1, 2, 3, 4.5, 6e7, 2026-11-24, 50 % of 8½ is ④ + Ⅷ.
😀 👩‍👩‍👧 🏳️‍🌈 🇩🇪 ❤️ x² ≤ y³ → ∞ € £ ¥ © ® ™ … — – “quotes” ‘single’ «guillemets» [MASK] <|endoftext|>
""".strip().splitlines()


def corpus():
    root = pathlib.Path(__file__).resolve().parents[2]
    for path in sorted(root.glob("docs/*.md")) + [root / "LICENSE", root / "README.md"]:
        yield from path.read_text().splitlines()
    yield from LINES * 20


def train(folder):
    """The trained tokenizers by name, and the file or folder that Brasa reads each from."""
    out = {}
    lines = list(corpus())
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=3000, show_progress=False, special_tokens=["<|endoftext|>"],
                                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    bpe.decoder = decoders.ByteLevel()
    (folder / "gpt2").mkdir(exist_ok=True)
    bpe.model.save(str(folder / "gpt2"))
    out["gpt2"] = bpe, folder / "gpt2"

    spaced = Tokenizer.from_str(bpe.to_str())
    spaced.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    spaced.add_special_tokens(["<s>", "</s>", tokenizers.AddedToken("<mask>", lstrip=True), tokenizers.AddedToken("<r>", rstrip=True, lstrip=True)])
    spaced.post_processor = processors.RobertaProcessing(("</s>", spaced.token_to_id("</s>")), ("<s>", spaced.token_to_id("<s>")), add_prefix_space=True)
    out["gpt2_roberta"] = spaced, folder / "gpt2_roberta.json"

    plain = Tokenizer.from_str(bpe.to_str())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    out["gpt2_whole"] = plain, folder / "gpt2_whole.json"

    for name, options in {"bert": {"lowercase": True}, "bert_cased": {"lowercase": False}, "bert_accents": {"lowercase": True, "strip_accents": False},
                          "bert_unclean": {"lowercase": True, "clean_text": False, "handle_chinese_chars": False}}.items():
        bert = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        bert.normalizer = normalizers.BertNormalizer(**options)
        bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        bert.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=2500, show_progress=False, special_tokens=special))
        bert.decoder = decoders.WordPiece()
        bert.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        if name == "bert":
            (folder / "bert").mkdir(exist_ok=True)
            bert.model.save(str(folder / "bert"))
            out[name] = bert, folder / "bert"
            bert = Tokenizer.from_str(bert.to_str())
            bert.add_tokens(["Newword", "two words", "日本"])
            name = "bert_added"
        out[name] = bert, folder / f"{name}.json"
    for _, (tokenizer, path) in out.items():
        if path.suffix == ".json":
            tokenizer.save(str(path))
    return out


def texts(seed, count):
    random.seed(seed)
    words = [w for line in LINES for w in line.split(" ")] + ["", "  ", "\n", "\t\n ", "\r\n", "[SEP]", "[CLS]", "[mask]", "<mask>", "<r>", "</s>", "Newword", "newword", "two words",
                                                             "日本", "'s", "'S", "x" * 101, "ab" * 50, "a" * 3000, "\u00a0", "\u3000", "\u200b", "\u200d", "\ufeff", "\x85", "\x1c", "İstanbul", "ΣΑΣ", "ﬁ", "①",
                                                             "e\u0301", "a\u0323\u0301", "a\u0301\u0323", "\u302e\u0301", "각", "\u1100\u1161\u11a8", "\x00", "\ufffd", "\x07", "㐀", "𠀀", "豈"]
    blocks = [(0, 0x7f), (0, 0xff), (0x100, 0x24f), (0x300, 0x36f), (0x370, 0x5ff), (0x600, 0xdff), (0xe00, 0x1fff), (0x2000, 0x2bff), (0x3000, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3),
              (0xe000, 0xf8ff), (0xf900, 0xffff), (0x1d000, 0x1d7ff), (0x1f300, 0x1faff), (0x10000, 0x10ffff), (0, 0x10ffff)]

    def character():
        while True:
            c = random.randint(*random.choice(blocks))
            if not 0xd800 <= c <= 0xdfff:
                return chr(c)

    for _ in range(count):
        parts = []
        for _ in range(random.randint(0, 12)):
            kind = random.random()
            if kind < 0.5:
                parts.append(random.choice(words))
            elif kind < 0.8:
                parts.append("".join(character() for _ in range(random.randint(1, 6))))
            elif kind < 0.9:
                parts.append(random.choice(words).swapcase())
            else:
                w = random.choice(words)[:20]
                parts.append(w[: len(w) // 2] + character() + w[len(w) // 2:])
        data = random.choice(["", " ", " ", " "]).join(parts).encode()
        if random.random() < 0.2 and data:  # what is no UTF-8
            data = bytearray(data)
            for _ in range(random.randint(1, 4)):
                data[random.randrange(len(data))] = random.randrange(256)
        yield bytes(data)


def differing(command, path, tokenizer):
    """Code points that Brasa and the library take for different things: their versions of Unicode differ."""
    points = [c for c in range(0x110000) if not 0xd800 <= c <= 0xdfff]
    rows = [points[i:i + 64] for i in range(0, len(points), 64)]
    rows_text = [" ".join(f"a{chr(c)}b" for c in row) for row in rows]

    def encoded(lists):
        got = brasa(command, path, [{"hex": t.encode().hex()} for t in lists])
        tokenizer.no_truncation()
        return [g["ids"] == tokenizer.encode(t).ids for g, t in zip(got, lists, strict=True)]

    suspects = [c for row, same in zip(rows, encoded(rows_text), strict=True) if not same for c in row]
    single = encoded([f"a{chr(c)}b" for c in suspects]) if suspects else []
    return {chr(c) for c, same in zip(suspects, single, strict=True) if not same}


def brasa(command, path, requests):
    lines = "".join(json.dumps(r) + "\n" for r in requests)
    done = subprocess.run([command, "tokens", str(path)], input=lines, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("brasa")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--count", type=int, default=10000)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {options.seed}, {options.count} texts, tokenizers {tokenizers.__version__}")
    data = list(texts(options.seed, options.count))
    failed = 0
    for name, (tokenizer, path) in train(options.folder).items():
        tokenizer_data = data
        if name.startswith("bert"):
            other = differing(options.brasa, path, tokenizer)
            tokenizer_data = ["".join(c for c in raw.decode(errors="replace") if c not in other).encode() for raw in data]
            print(f"{name}: {len(other)} code points are taken for different things, {sum(unicodedata.category(c) == 'Cn' for c in other)} of them not in Python's Unicode "
                  f"{unicodedata.unidata_version}; they are left out of the texts")
        wanted, requests = [], []
        for i, raw in enumerate(tokenizer_data):
            text, other = raw.decode(errors="replace"), tokenizer_data[(i + 1) % len(data)].decode(errors="replace")
            for cut in (None, random.randint(4, 40)):
                if cut:
                    tokenizer.enable_truncation(cut, direction=["right", "left"][i % 2])
                    e = tokenizer.encode(text, other)
                    request = {"hex": raw.hex(), "pair": tokenizer_data[(i + 1) % len(data)].hex(), "max_length": cut, "truncation_side": ["right", "left"][i % 2]}
                else:
                    tokenizer.no_truncation()
                    e = tokenizer.encode(text)
                    request = {"hex": raw.hex()}
                wanted.append({"ids": e.ids, "type_ids": e.type_ids, "text": tokenizer.decode(e.ids, skip_special_tokens=True), "all": tokenizer.decode(e.ids, skip_special_tokens=False)})
                requests.append(request)
        got = brasa(options.brasa, path, requests)
        wrong = []
        for g, w, r in zip(got, wanted, requests, strict=True):
            if g != w:
                wrong.append((r, g, w))
        failed += len(wrong)
        print(f"{name}: {len(got) - len(wrong)} of {len(got)} equal")
        for r, g, w in wrong[:3]:
            print("  ", repr(bytes.fromhex(r["hex"]).decode(errors="replace"))[:300], {k: v for k, v in r.items() if k != "hex" and k != "pair"})
            for key in w:
                if g.get(key) != w[key]:
                    print("    brasa ", key, repr(g.get(key))[:300])
                    print("    python", key, repr(w[key])[:300])
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
