"""Small modules, each for something that an archive can hold."""
import collections
import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from case import Case, calls, calls_with
from torch import nn
from torch.export import Dim

CASES = []


def case(inputs, *args, **options):
    """Adds the decorated class, built with `args`, as a case of its name."""

    def add(cls):
        name = "".join("_" + c.lower() if c.isupper() else c for c in cls.__name__).lstrip("_")
        CASES.append(Case(name, lambda: cls(*args), inputs, **options))
        return cls

    return add


def function(name, inputs, f, **options):
    class Module(nn.Module):
        def forward(self, *args, **kwargs):
            return f(*args, **kwargs)

    if "dynamic" in options:
        options["dynamic"] = (options["dynamic"],)  # what *args takes is one argument
    CASES.append(Case(name, Module, inputs, **options))


def layer(name, inputs, build, **options):
    CASES.append(Case(name, build, inputs, **options))


def x(*sizes):
    return lambda: torch.randn(*sizes)


# Buffers and constants.
@case(calls(x(4), x(4), x(4)))
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("total", torch.zeros(4))

    def forward(self, v):
        self.calls += 1
        self.total.mul_(0.5).add_(v)
        return self.total / self.calls


@case(calls(lambda: (torch.randn(3), torch.tensor(1)), lambda: (torch.randn(3), torch.tensor(3))), gradients=False)
class KeyValueCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(5, 3))

    def forward(self, v, position):
        self.cache.index_copy_(0, position.reshape(1), v.reshape(1, 3))
        return self.cache.sum(0)


@case(calls(x(2, 6), x(2, 6)), gradients=False)
class SlicedBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.arange(12.0).reshape(2, 6))

    def forward(self, v):
        self.window[:, :-1] = self.window[:, 1:].clone()
        self.window[:, -1] = v.sum(1)
        self.window[0].copy_(v[0], non_blocking=True)
        return self.window * 2


@case(calls(x(3)))
class NotPersistent(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.linspace(0, 1, 3), persistent=False)
        self.constant = torch.tensor([3.0, 4.0, 5.0])

    def forward(self, v):
        return v * self.table + self.constant + torch.tensor([1.0, 2.0, 3.0])


@case(calls(lambda: torch.tensor([[0, 2], [3, 4]])))
class TiedEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.embedding(tokens).tanh())


# The first name of what is tied has no dot.
@case(calls(x(2, 3)))
class TiedAtTheRoot(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3))
        self.layer = nn.Linear(3, 3)
        self.layer.weight = self.weight

    def forward(self, v):
        return None, self.layer(v) @ self.weight


@case(calls(x(2, 4)))
class SharedModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = self.a
        self.list = nn.ModuleList([self.a, nn.Linear(4, 4)])
        self.named = nn.ModuleDict({"k.ey".replace(".", "_"): nn.Linear(4, 4)})
        self.free = nn.ParameterList([nn.Parameter(torch.randn(4)) for _ in range(2)])
        self.frozen = nn.Parameter(torch.randn(4), requires_grad=False)

    def forward(self, v):
        return self.list[1](self.b(self.a(v))) + self.free[0] * self.named["k_ey"](v) + self.free[1] * self.frozen


@case(calls(x(3, 4)))
class ViewOfParameter(nn.Module):
    def __init__(self):
        super().__init__()
        whole = torch.randn(4, 8)
        self.register_buffer("left", whole[:, :4])
        self.register_buffer("right", whole.t()[4:])
        self.weight = nn.Parameter(torch.randn(6, 4).t())

    def forward(self, v):
        return (v @ self.left + v @ self.right.t()) @ self.weight


@case(calls(x(2)), gradients=False)
class ManyDtypes(nn.Module):
    def __init__(self):
        super().__init__()
        for d in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float64):
            self.register_buffer("of_" + str(d).split(".")[1], torch.tensor([1, 0], dtype=d))
        self.register_buffer("of_complex64", torch.tensor([1 + 2j, 3 - 1j]))

    def forward(self, v):
        b = dict(self.named_buffers())
        return tuple(v.to(t.dtype) + t for n, t in b.items() if n != "of_bool") + (b["of_bool"] & (v > 0),)


@case(calls(x(0, 3)))
class Empty(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("nothing", torch.zeros(0, 3))
        self.w = nn.Parameter(torch.randn(3, 2))

    def forward(self, v):
        return torch.cat([v, self.nothing]) @ self.w, v.sum(0), torch.zeros(2, 0)


# Inputs and outputs.
Pair = collections.namedtuple("Pair", ["left", "right"])


class Sizes(NamedTuple):
    height: torch.Tensor
    width: torch.Tensor


torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="case.Pair")
torch.utils._pytree._register_namedtuple(Sizes, serialized_type_name="case.Sizes")

function(
    "nested_containers",
    calls(lambda: ({"b": torch.randn(2), "a": [torch.randn(2), (torch.randn(2), torch.randn(2))]}, [torch.randn(2)])),
    lambda d, l: {"sum": d["b"] + d["a"][0], "rest": [d["a"][1][0] * l[0], {"last": d["a"][1][1]}], "none": None, "tuple": (l[0],)},
)
function(
    "named_tuples",
    calls(lambda: (Pair(torch.randn(2), torch.randn(2)), collections.OrderedDict(z=torch.randn(2), a=torch.randn(2)))),
    lambda p, d: Sizes(p.left + d["z"], p.right - d["a"]),
)
function("keywords", calls_with(lambda: ((torch.randn(3),), {"scale": torch.randn(3), "bias": torch.randn(3)})), lambda v, *, scale, bias: v * scale + bias)
function(
    "optional_keywords",
    calls_with(lambda: ((torch.randn(3), None), {"scale": 2.0, "bias": torch.randn(3), "mode": "sum"})),
    lambda v, mask, scale=1.0, bias=None, mode="mean": (v * scale + bias if mask is None else v).sum() if mode == "sum" else v,
    only_tensors=True,
)
function("python_numbers", calls(lambda: (torch.randn(3), 2, 0.5, True)), lambda v, n, r, b: v.repeat(n) * r if b else v, only_tensors=True)
function("numbers_out", calls(x(3, 4)), lambda v: (v.size(0), v + 1, 2.5, True, "text", None, [v.dim()]))
function("input_is_output", calls(x(3)), lambda v: (v, v, v * 2, v.view(3, 1)))
function("unused_input", calls(lambda: (torch.randn(2), torch.randn(3))), lambda a, b: a * 2)
function("constant_output", calls(x(2)), lambda v: (torch.ones(2), v.exp(), torch.full((2, 2), 7)))
function("same_input_twice", calls(lambda: (torch.ones(2), torch.ones(2))), lambda a, b: a @ b)


@case(calls(lambda: (torch.zeros(3), torch.randn(3))), gradients=False)
class InputChanged(nn.Module):
    def forward(self, state, v):
        state.add_(v).clamp_(min=0)
        return state.sum()


@case(calls(lambda: ([torch.zeros(2), torch.zeros(2)], torch.randn(2))), gradients=False)
class ListChanged(nn.Module):
    def forward(self, states, v):
        states[1].copy_(v.exp())
        states[0].mul_(2).sub_(v)
        return states[0] + states[1]


# Sizes that vary.
B = Dim("batch", min=1, max=64)
T = Dim("time", min=2, max=100)
layer("dynamic_batch", calls(x(3, 4), x(1, 4), x(7, 4)), lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), dynamic=({0: B},))
function("two_sizes", calls(x(3, 4), x(1, 9), x(5, 2)), lambda v: v.reshape(-1)[: v.size(1)] + v.mean(0) * v.size(0), dynamic=({0: B, 1: T},))
function("equal_sizes", calls(lambda: (torch.randn(3, 4), torch.randn(3)), lambda: (torch.randn(6, 4), torch.randn(6))), lambda a, b: a * b[:, None], dynamic=({0: B}, {0: B}))
function("derived_size", calls(x(6, 2), x(10, 2)), lambda v: v.view(v.size(0) // 2, 4) + v.view(2, -1).sum(), dynamic=({0: 2 * Dim("half", min=1, max=32)},))
function("shifted_sizes", calls(lambda: (torch.randn(4), torch.randn(5)), lambda: (torch.randn(7), torch.randn(8))), lambda a, b: a + b[1:], dynamic=({0: T}, {0: T + 1}))
function("automatic_sizes", calls(x(3, 4), x(5, 6)), lambda v: F.pad(v, (1, 2)).unfold(1, 3, 2).sum(-1), dynamic=({0: Dim.AUTO, 1: Dim.AUTO},))
function("size_arithmetic", calls(x(5, 3), x(8, 3)), lambda v: v[: v.size(0) // 2 + 1] * (v.size(0) ** 2 % 7) / max(v.size(0), 3), dynamic=({0: Dim.AUTO},))
function("created_from_size", calls(x(5), x(9)), lambda v: torch.arange(v.size(0)) + torch.ones(v.size(0), v.size(0)).tril().sum(0) * v + torch.zeros_like(v), dynamic=({0: T},))
function("size_as_float", calls(x(5)), lambda v: v / math.sqrt(v.size(0)) + float(v.size(0)) * 0.5, dynamic=({0: Dim.AUTO},))
function("size_out", calls(x(5, 2), x(9, 2)), lambda v: (v.size(0) * 2, v.sum(), v.size(0) + 1), dynamic=({0: T},))
function("scalar_input", calls(lambda: (torch.randn(4), 3), lambda: (torch.randn(4), 5)), lambda v, n: v * n + n, dynamic=(None, Dim.DYNAMIC))
function("split_sizes", calls(x(8, 2), x(12, 2)), lambda v: torch.cat([c.cumsum(0) for c in v.chunk(2)] + [v[: v.size(0) // 4]]), dynamic=({0: 4 * Dim("q", min=1, max=9)},))
layer("dynamic_image", calls(x(3, 3, 16, 16), x(2, 3, 24, 20)), lambda: nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()), dynamic=({0: B, 2: Dim.AUTO, 3: Dim.AUTO},))
function("upsampled", calls(x(1, 2, 5, 5), x(1, 2, 6, 7)), lambda v: F.interpolate(v, scale_factor=2, mode="bilinear") + F.interpolate(v, size=(2 * v.size(2), 2 * v.size(3))), dynamic=({2: Dim.AUTO, 3: Dim.AUTO},))


@case(calls(lambda: torch.tensor([1.0, -2, 3]), lambda: torch.tensor([1.0, 2, 3, -4, 5])), dynamic=({0: T},), gradients=False)
class DataDependentSize(nn.Module):
    def forward(self, v):
        found = v[v > 0]
        return found.sum(), found * 2, torch.nonzero(v)


@case(calls(lambda: (torch.randn(6), torch.tensor(3)), lambda: (torch.randn(6), torch.tensor(5))), gradients=False)
class ItemAsSize(nn.Module):
    def forward(self, v, n):
        k = n.item()
        torch._check(k >= 1)
        torch._check(k <= 6)
        return v[:k].sum(), torch.arange(k)


# Control flow.
@case(calls(lambda: (torch.randn(3), torch.tensor(True)), lambda: (torch.randn(3), torch.tensor(False))), gradients=False)
class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.yes, self.no = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, v, flag):
        return torch.cond(flag, lambda a: self.yes(a).relu(), lambda a: self.no(a).sin(), (v,))


@case(calls(x(2, 3), x(5, 3)), dynamic=({0: T},), gradients=False)
class BranchOnSize(nn.Module):
    def forward(self, v):
        return torch.cond(v.shape[0] > 3, lambda a: a.cos(), lambda a: a.sin(), (v,))


@case(calls(lambda: (torch.tensor(0), torch.ones(2))), gradients=False)
class Loop(nn.Module):
    def forward(self, i, v):
        from torch._higher_order_ops import while_loop

        return while_loop(lambda i, v: (i < 5) & (v.sum() < 100), lambda i, v: (i + 1, v * 2 + i), (i, v))


@case(calls(lambda: (torch.randn(4, 3), torch.zeros(3))), gradients=False)
class Scan(nn.Module):
    def forward(self, xs, start):
        from torch._higher_order_ops import scan

        return scan(lambda carry, x: ((carry + x).tanh(), carry * x), start, xs)


# Modes.
@case(calls(x(2, 3)))
class NoGradInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3))

    def forward(self, v):
        with torch.no_grad():
            s = (v * self.w).sum()
        return v * self.w * s + (self.w * 2).detach()


@case(calls(x(2, 4)), rtol=2e-2, atol=2e-2)
class AutocastInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, v):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.l(v)
        return y.float() + self.l(v)


layer("batch_norm_training", calls(x(4, 3), x(4, 3)), lambda: nn.BatchNorm1d(3), training=True)
layer("batch_norm_training_3d", calls(x(2, 3, 2, 2, 2)), lambda: nn.BatchNorm3d(3, momentum=0.3), training=True)
layer("instance_norm", calls(x(2, 3, 5)), lambda: nn.InstanceNorm1d(3, affine=True, track_running_stats=True), training=True)
layer("dropout_eval", calls(x(2, 3)), lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 3), nn.AlphaDropout(0.1)))

# Layers.
layer("conv_family", calls(x(1, 4, 9, 9)), lambda: nn.Sequential(nn.Conv2d(4, 8, 3, padding="same", groups=2), nn.GroupNorm(2, 8), nn.GELU(approximate="tanh"), nn.ConvTranspose2d(8, 4, 3, stride=2, output_padding=1), nn.PixelShuffle(2)))
layer("conv1d_circular", calls(x(2, 3, 10)), lambda: nn.Sequential(nn.Conv1d(3, 4, 3, padding=2, padding_mode="circular", dilation=2), nn.MaxPool1d(2), nn.Mish()))
layer("conv3d", calls(x(1, 2, 4, 5, 6)), lambda: nn.Sequential(nn.Conv3d(2, 3, 2), nn.AvgPool3d(2), nn.ELU()))
layer("pools", calls(x(1, 2, 9, 9)), lambda: nn.Sequential(nn.MaxPool2d(3, 2, ceil_mode=True), nn.LPPool2d(2, 2), nn.AdaptiveMaxPool2d(1)))
layer("lstm_bidirectional", calls(x(3, 2, 4)), lambda: nn.LSTM(4, 3, 2, bidirectional=True), atol=1e-4)
layer("gru_batch_first", calls(x(2, 5, 4), x(3, 5, 4)), lambda: nn.GRU(4, 3, batch_first=True), dynamic=({0: B},))
layer("rnn_cell", calls(x(2, 4)), lambda: nn.LSTMCell(4, 3))
layer("transformer_encoder", calls(x(2, 5, 8)), lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True), 2, enable_nested_tensor=False))
layer("multihead_attention", calls(lambda: (torch.randn(4, 2, 8),) * 3), lambda: nn.MultiheadAttention(8, 2, bias=False))
function("attention_masks", calls(lambda: (torch.randn(2, 2, 4, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 8), torch.rand(4, 6) > 0.3)), lambda q, k, v, m: (F.scaled_dot_product_attention(q, k, v, attn_mask=m), F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)))
function("grouped_attention", calls(lambda: (torch.randn(1, 4, 5, 8), torch.randn(1, 2, 5, 8))), lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True))
layer("embedding_bag", calls(lambda: (torch.tensor([1, 2, 4, 3]), torch.tensor([0, 3]))), lambda: nn.EmbeddingBag(6, 3, mode="mean"))
layer("padding_embedding", calls(lambda: torch.tensor([[0, 1], [2, 0]])), lambda: nn.Embedding(4, 3, padding_idx=0, max_norm=None, scale_grad_by_freq=False))
layer("norms", calls(x(2, 6)), lambda: nn.Sequential(nn.LayerNorm(6), nn.RMSNorm(6, eps=1e-5), nn.Softplus(), nn.LogSoftmax(1)))
layer("weight_norm", calls(x(2, 4)), lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)))
layer("bilinear", calls(lambda: (torch.randn(2, 3), torch.randn(2, 4))), lambda: nn.Bilinear(3, 4, 2))
layer("activations", calls(x(3, 4)), lambda: nn.Sequential(nn.Hardswish(), nn.PReLU(), nn.LeakyReLU(0.2), nn.CELU(), nn.Softsign(), nn.Hardtanh(), nn.Tanhshrink(), nn.GLU()))
layer("spectral", calls(x(2, 4)), lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)))
layer("losses", calls(lambda: (torch.randn(4, 3), torch.tensor([0, 2, 1, -100]))), lambda: nn.CrossEntropyLoss(label_smoothing=0.1, weight=torch.tensor([1.0, 2.0, 0.5])))

# Operators with unusual arguments.
function("indexing", calls(lambda: (torch.randn(4, 5, 6), torch.tensor([0, 2, 1]))), lambda v, i: (v[i], v[:, i, 1], v[..., None, ::2], v[1:3, -1], v[v > 0.5].sum(), v.index_select(1, i), v.gather(0, i.reshape(3, 1, 1).expand(3, 5, 6))))
function("writes", calls(lambda: (torch.randn(4, 5), torch.tensor([0, 2]))), lambda v, i: (lambda w: (w.index_add_(0, i, torch.ones(2, 5)), w.scatter_(1, i[:, None], 3.0), w.masked_fill_(w > 1, 0), w.__setitem__((slice(1, 3), 2), 7.0), w)[-1])(v.clone()))
function("views", calls(x(2, 3, 4)), lambda v: (v.as_strided((2, 2), (1, 3)), v.movedim(0, 2).flatten(1), v.squeeze().unsqueeze(-1).expand(2, 3, 4, 2).permute(3, 0, 2, 1), v.diagonal(0, 1, 2), v.unflatten(2, (2, -1)), v.view(torch.int32).bitwise_and(1), torch.broadcast_to(v[:1], (2, 3, 4))))
function("reductions", calls(x(3, 4)), lambda v: (v.sum((0, 1)), v.mean(-1, keepdim=True), v.var(0, correction=0), v.amax(1), v.max(0), v.argmin(1), v.norm(3, 0), v.logsumexp((0, 1)), v.std(), v.prod(0), v.all(), v.median(1)))
function("orders", calls(x(3, 5)), lambda v: (v.sort(1, descending=True), v.topk(2), torch.argsort(v, 0), v.kthvalue(2, 1), v.cummax(1), v.unique().sum()), gradients=False)
function("linear_algebra", calls(x(3, 3)), lambda v: (torch.linalg.inv(v + 3 * torch.eye(3)), torch.linalg.det(v), torch.linalg.cholesky(v @ v.T + torch.eye(3)), torch.einsum("ij,jk->ki", v, v), torch.linalg.norm(v), torch.kron(v, v)), rtol=1e-3)
function("fourier", calls(x(2, 8)), lambda v: (torch.fft.rfft(v).abs(), torch.fft.irfft(torch.fft.rfft(v), n=8), torch.fft.fft2(v), torch.stft(v, 4, window=torch.hann_window(4), return_complex=True)))
function("complex_numbers", calls(lambda: torch.randn(3, 4, dtype=torch.complex64)), lambda v: (v.conj() * v, v.real + v.imag, torch.view_as_real(v), torch.polar(v.abs(), v.angle()), v @ v.mH, v.conj().resolve_conj()), gradients=False)
function("half_types", calls(lambda: (torch.randn(3, 4).half(), torch.randn(4, 3).bfloat16())), lambda a, b: (a.softmax(1), b * 2 + 1, a.float() @ b.float(), a.to(torch.bfloat16) @ b), rtol=2e-2, atol=2e-2)
function("float8", calls(x(4)), lambda v: (v.to(torch.float8_e4m3fn).to(torch.float32), v.to(torch.float8_e5m2).float()), gradients=False)
function("integers", calls(lambda: (torch.tensor([7, -7, 5]), torch.tensor([2, 2, -3]))), lambda a, b: (a // b, a % b, a / b, a << 2, a ^ b, torch.div(a, b, rounding_mode="trunc"), a.float().pow(b), torch.bitwise_not(a), a.clamp(-5, 5)), gradients=False)
function("creation", calls(x(2, 3)), lambda v: (v.new_zeros(2), torch.empty(2).fill_(3), torch.linspace(0, 1, 5), torch.logspace(0, 2, 3), torch.eye(2, 3), torch.full_like(v, float("inf")), torch.tril_indices(3, 3), torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij"), v.new_full((2,), 7, dtype=torch.int64), torch.tensor(float("nan"))))
function("memory_formats", calls(x(2, 3, 4, 4)), lambda v: (F.conv2d(v.to(memory_format=torch.channels_last), torch.ones(2, 3, 1, 1)).contiguous(), torch.empty_like(v, memory_format=torch.preserve_format).zero_(), v.clone(memory_format=torch.channels_last)))
function("where_and_masks", calls(x(3, 4)), lambda v: (torch.where(v > 0, v, 0.0), torch.where(v > 0)[0].sum(), v.masked_select(v > 0).sum(), v.nan_to_num(0, 1, 2), torch.isclose(v, v), (v > 0).any(1), v.bool().logical_xor(v > 0)))
function("lists", calls(x(6, 4)), lambda v: (v.split([1, 2, 3]), torch.stack(v.unbind(1)), torch.tensor_split(v, 4), v.chunk(3, 0), torch.block_diag(v, v), torch.cat([v, v], -1).roll((1, 2), (0, 1)), torch.flip(v, [0, 1]), v.rot90(), torch._foreach_mul([v, v + 1], 2.0)))
function("for_each", calls(lambda: ([torch.randn(2), torch.randn(3)], [torch.rand(2) + 1, torch.rand(3) + 1])), lambda a, b: (torch._foreach_addcdiv(a, b, b, value=0.5), torch._foreach_addcmul(a, b, b, [2.0, -1.0]), torch._foreach_maximum(a, b), torch._foreach_clamp_min(a, 0.5), torch._foreach_pow(b, 2), torch._foreach_pow(2.0, a), torch._foreach_pow(b, a), torch._foreach_mul(a, [2.0, 3.0])), gradients=False)
function("views_in_place", calls(x(1, 3, 4)), lambda v: (lambda w: (w.transpose_(1, 2), w.mul_(2), w.squeeze_(0), w.t_(), w.unsqueeze_(-1), w.swapaxes_(0, 1), w)[-1])(v.clone()))
function("scalars", calls(x(3)), lambda v: (v.add(2, alpha=3), 2 - v, 2**v, v.clamp(max=0.5), torch.add(v, True), v * 1e-40, v.lerp(v + 1, 0.25), v.addcmul(v, v, value=-2), v.eq(1), v * float("inf")))
function("samplers", calls(lambda: (torch.randn(1, 2, 4, 4), torch.rand(1, 3, 3, 2) * 2 - 1)), lambda v, g: (F.grid_sample(v, g, align_corners=False), F.affine_grid(torch.eye(2, 3)[None], (1, 2, 3, 3), align_corners=True), F.unfold(v, 2), F.interpolate(v, (7, 3), mode="bicubic", antialias=True)))
function("nothing_to_do", calls(lambda: (torch.randn(2), torch.randn(2))), lambda a, b: (b, a))
function("asserts", calls(x(3, 2), x(5, 2)), lambda v: (torch._check(v.size(0) < 50), torch._assert(v.size(1) == 2, "two columns"), v * 2)[-1], dynamic=({0: Dim.AUTO},))
function("long_chain", calls(x(4)), lambda v: __import__("functools").reduce(lambda a, k: (a + k).sin() * 0.9, range(300), v))


# Programs in the core operators, and with what run_decompositions leaves.
layer("core_transformer", calls(x(2, 5, 8)), lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), core=True, gradients=False)
layer("core_conv_net", calls(x(2, 3, 8, 8)), lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5), nn.Softmax(1)), core=True)
layer("core_lstm", calls(x(3, 2, 4)), lambda: nn.LSTM(4, 3, 2), core=True)
layer("core_batch_norm_training", calls(x(4, 3, 2, 2), x(4, 3, 2, 2)), lambda: nn.BatchNorm2d(3), training=True, core=True)
function("core_views", calls(x(2, 3, 4)), lambda v: (v.diagonal(0, 1, 2), v.movedim(0, 2).flatten(1), v[:, 1:, ::2].sum(), v.roll(1), v.chunk(2, 2)[1], v.expand(2, 2, 3, 4).sum(0), F.pad(v, (1, 1), mode="replicate")), core=True)
layer("core_dynamic", calls(x(3, 5, 8), x(2, 9, 8)), lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU()), dynamic=({0: B, 1: T},), core=True)
