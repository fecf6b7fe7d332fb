"""The models of `brasa bench` in PyTorch, with its sizes: what is trained, what is run forward, and on which inputs."""
import importlib

import torch
import torch.nn.functional as F
from torch import nn


class MlpBlock(nn.Module):
    def __init__(self, width=512, hidden=2048):
        super().__init__()
        self.n, self.a, self.b = nn.LayerNorm(width), nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.n(x))))


class Perceptron(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(inputs, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Pointwise(nn.Module):
    def forward(self, x, y, z):
        positive, negative = torch.tanh(x * y + z) * torch.sigmoid(z), x.exp().clamp(max=4) - y
        return torch.where(x > 0, positive, negative) * 0.5 + x


class SoftmaxNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.n = nn.LayerNorm(width)

    def forward(self, x):
        return torch.softmax(self.n(x) * 0.125, -1)


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.l1, self.l2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.a, self.b = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.qkv(self.l1(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(mixed.transpose(1, 2).reshape(n, t, width))
        return x + self.b(F.gelu(self.a(self.l2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, depth=4, width=384, heads=6, vocabulary=8192, context=256):
        super().__init__()
        self.e, self.p = nn.Embedding(vocabulary, width), nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(depth))
        self.f, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.e(tokens) + self.p[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.f(x)).flatten(0, 1)


class Lstm(nn.Module):
    """Two layers over a sequence; classes from the last step."""

    def __init__(self, inputs=64, hidden=256, classes=10):
        super().__init__()
        self.lstm, self.head = nn.LSTM(inputs, hidden, num_layers=2, batch_first=True), nn.Linear(hidden, classes)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class WrittenRnn(nn.Module):
    """A recurrent layer whose steps are written out."""

    def __init__(self, width):
        super().__init__()
        self.cell = nn.RNNCell(width, width)

    def forward(self, xs):
        h = None
        for x in xs.unbind(0):
            h = self.cell(x, h)
        return h


class LongChain(nn.Module):
    def forward(self, x):
        y = x
        for _ in range(2500):
            y = y * 0.5 + x
        return y


class DoubleConv(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, channels=3, classes=2, width=32, depth=4):
        super().__init__()
        sizes = [width << i for i in range(depth + 1)]
        self.first = DoubleConv(channels, width)
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip(sizes, sizes[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(sizes, sizes[1:]))
        self.merge = nn.ModuleList(DoubleConv(b, a) for a, b in zip(sizes, sizes[1:]))
        self.last = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        x, skips = self.first(x), []
        for block in self.down:
            skips.append(x)
            x = block(F.max_pool2d(x, 2))
        for up, merge in zip(reversed(self.up), reversed(self.merge)):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.last(x)


def vit():
    import timm
    return timm.create_model("vit_tiny_patch16_224")


def vit_b16():
    import timm
    return timm.create_model("vit_base_patch16_224")


def resnet18():
    import torchvision
    return torchvision.models.resnet18()


def mobilenet_v3():
    import torchvision
    return torchvision.models.mobilenet_v3_large()


def images(n, size=224):
    return torch.randn(n, 3, size, size)


def classes(n, limit=1000):
    return torch.randint(limit, (n,))


def tokens(n):
    return torch.randint(8192, (n, 256))


# Name: how to make the model, the input and the target.
TRAINED = {
    "vit_tiny_train_b8": lambda: (vit(), images(8), classes(8)),
    "vit_tiny_train_b8_bf16": lambda: (vit(), images(8), classes(8)),
    "gpt_train_b4_t256": lambda: (Gpt(), tokens(4), classes(1024, 8192)),
    "resnet18_train_b8": lambda: (resnet18(), images(8), classes(8)),
    "unet_train_b2": lambda: (UNet(), images(2, 128), torch.randint(2, (2, 128, 128))),
    "lstm_train_b16_t128": lambda: (Lstm(), torch.randn(16, 128, 64), classes(16, 10)),
    "mlp_train_b8": lambda: (Perceptron(64, 128, 10), torch.randn(8, 64), classes(8, 10)),
    "rnn_500_steps_train": lambda: (WrittenRnn(32), torch.randn(500, 4, 32), classes(4, 32)),
}


def of_all_lengths(batch):
    return nn.LSTM(64, 64), [torch.randn(n + 1, batch, 64) for n in torch.randperm(200).tolist()]


# Name: how to make the model, and the inputs, each of which goes forward and backward.
SEQUENCES = {
    "lstm_lengths_b1": lambda: of_all_lengths(1),
    "lstm_lengths_b16": lambda: of_all_lengths(16),
}
# Name: how to make the model whose parameters an optimizer's step changes.
OPTIMIZED = {"adam_86M": vit_b16}
# Name: how to make the model, and its inputs.
INFERRED = {
    "vit_tiny_infer_b8": lambda: (vit(), images(8)),
    "vit_tiny_infer_b8_bf16": lambda: (vit(), images(8)),
    "vit_tiny_infer_b1": lambda: (vit(), images(1)),
    "gpt_infer_b1_t256": lambda: (Gpt(), tokens(1)),
    "resnet18_infer_b8": lambda: (resnet18(), images(8)),
    "mobilenet_v3_infer_b8": lambda: (mobilenet_v3(), images(8)),
    "unet_infer_b1": lambda: (UNet(), images(1, 256)),
    "mlp_block_infer": lambda: (MlpBlock(), torch.randn(512, 512)),
    "mlp_infer_b8": lambda: (Perceptron(64, 128, 10), torch.randn(8, 64)),
    "pointwise_4M": lambda: (Pointwise(), *(torch.randn(4 << 20) for _ in range(3))),
    "pointwise_64": lambda: (Pointwise(), *(torch.randn(64) for _ in range(3))),
    "chain_5000": lambda: (LongChain(), torch.randn(64)),
    "layernorm_softmax_4096x1024": lambda: (SoftmaxNorm(1024), torch.randn(4096, 1024)),
}


def inferred(workload):
    """Model and inputs, ready to be called; of an exported program (.pt2) those that it was exported with."""
    if workload.endswith(".pt2"):
        importlib.import_module("torch.ao.quantization.fx._decomposed")  # registers the operators of quantized programs
        program = torch.export.load(workload)
        return program.module(), program.example_inputs[0]
    model, *inputs = INFERRED[workload]()
    return model.eval(), inputs


def reduced(workload):
    """Is it autocast to bfloat16?"""
    return workload.endswith("_bf16")
