#!/usr/bin/env python3
"""Writes checkpoints of all kinds as `brasa verify checkpoints` reads them: good/ where torch.load(weights_only=True) takes the file,
bad/ where it refuses. The JSON beside a good file says what PyTorch found.

    tests/pytorch/checkpoints.py FOLDER [NAME | FILE.pth …]

A name is a case's below, all of them by default; a file may come from another version of PyTorch.
"""
import collections
import io
import json
import pathlib
import pickle
import struct
import sys
import warnings
import zipfile

import torch

CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


class Found:
    """A loaded value as JSON, and its tensors' bytes."""

    def __init__(self):
        self.tensors, self.storages = {}, {}

    def bytes_of(self, tensor):
        """The name of a tensor's elements, row-major, as the file has them."""
        name = f"t{len(self.tensors)}"
        self.tensors[name] = tensor.detach().clone(memory_format=torch.contiguous_format)
        return name

    def tensor(self, t):
        if t.device.type == "meta":
            return {"tensor": None}
        dtype = str(t.dtype).removeprefix("torch.")
        if t.layout in (torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
            t = t.to_dense().to_sparse_coo()  # as which Brasa reads them
        if t.layout != torch.strided:
            # Indices are int64 in Brasa.
            parts = {torch.sparse_coo: ("_indices", "_values"), torch.sparse_csr: ("crow_indices", "col_indices", "values")}
            return {"sparse": str(t.layout).removeprefix("torch."), "dtype": dtype, "shape": list(t.shape),
                    "parts": [self.bytes_of(getattr(t, part)()) for part in parts.get(t.layout, ())]}
        out = {"dtype": dtype, "shape": list(t.shape), "parameter": isinstance(t, torch.nn.Parameter),
               "requires_grad": t.requires_grad}
        if t.is_conj() or t.is_neg():
            return out | {"computed": self.bytes_of(t.resolve_conj().resolve_neg())}
        storage = self.storages.setdefault(t.untyped_storage()._cdata, len(self.storages))
        out |= {"stride": list(t.stride()), "offset": t.storage_offset(), "storage": storage}
        if not t.is_quantized:
            return out | {"tensor": self.bytes_of(t)}
        channels = t.qscheme() != torch.per_tensor_affine
        return out | {
            "tensor": self.bytes_of(torch.empty(0, dtype=t.int_repr().dtype).set_(
                t.untyped_storage(), t.storage_offset(), t.size(), t.stride())),
            "axis": t.q_per_channel_axis() if channels else None,
            "scale": (t.q_per_channel_scales().tolist() if channels else t.q_scale()),
            "zero_point": (t.q_per_channel_zero_points().tolist() if channels else t.q_zero_point()),
            "dequantized": self.bytes_of(t.dequantize())}

    def value(self, v):
        if isinstance(v, str) and any("\ud800" <= c <= "\udfff" for c in v):
            return {"text": v.encode("utf-8", "surrogatepass").hex()}
        if v is None or isinstance(v, (bool, str)):
            return v
        if isinstance(v, int):
            return v if abs(v) <= 2**53 else {"int": str(v)}
        if isinstance(v, float):
            return v if v == v and abs(v) != float("inf") else {"float": str(v)}
        if isinstance(v, complex):
            return {"complex": [self.value(v.real), self.value(v.imag)]}
        if isinstance(v, torch.Tensor):
            return self.tensor(v)
        if isinstance(v, (torch.TypedStorage, torch.UntypedStorage)):
            untyped = v.untyped() if isinstance(v, torch.TypedStorage) else v
            number = self.storages.setdefault(untyped._cdata, len(self.storages))
            flat = torch.empty(0, dtype=torch.uint8).set_(untyped)
            return {"Storage": self.bytes_of(flat), "dtype": str(v.dtype).removeprefix("torch."), "storage": number}
        if isinstance(v, torch.layout) or type(v).__name__ == "qscheme":
            return {"constant": str(v).removeprefix("torch.")}
        if isinstance(v, torch.dtype):
            return {"dtype": str(v).removeprefix("torch.")}
        if isinstance(v, torch.device):
            return {"device": str(v)}
        if isinstance(v, (bytes, bytearray)):
            return {"bytes": v.hex()}
        if isinstance(v, torch.Size):
            return {"Size": list(v)}
        if isinstance(v, (list, tuple, set)):
            return {type(v).__name__: [self.value(x) for x in v]}
        if isinstance(v, dict):
            return {type(v).__name__: [[self.value(k), self.value(x)] for k, x in v.items()]}
        raise TypeError(f"no JSON of {type(v)}")

    def write_tensors(self, path):
        header, data = {}, b""
        for name, t in self.tensors.items():
            raw = torch.view_as_real(t) if t.is_complex() else t
            raw = bytes(raw.contiguous().untyped_storage().tolist()) if raw.numel() else b""
            header[name] = {"dtype": "U8", "shape": [len(raw)], "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def saved(value, **options):
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


def repacked(file, change):
    """The archive with `change(name, bytes)` for each record; None drops it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    return out.getvalue()


# --- containers and numbers ---


@case
def numbers():
    return saved([0, 1, -1, 255, 256, 65535, 65536, 2**31 - 1, -(2**31), 2**31, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64,
                  10**30, -(10**30), 2**1000, 0.0, -0.0, 1e-320, float("nan"), float("inf"), -float("inf"), 0.1, True, False, None,
                  1 + 2j, complex(0, float("nan")), complex(-0.0, 1e300)])


@case
def texts():
    return saved(["", "a", "x" * 300, "äöü", "汉字", "😀", "a\0b", "\n", b"\0\xff", bytes(range(256)), bytearray(b"ab")])


CASES["empty_bytes"] = lambda: saved([b""])
CASES["empty_bytearray"] = lambda: saved([bytearray()])
CASES["surrogate"] = lambda: saved(["\ud800"])


@case
def containers():
    d = collections.OrderedDict([("b", 1), ("a", collections.OrderedDict())])
    d["self-made"] = {"x": [(), [], {}, (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]}
    return saved([d, {1, 2, 3}, set(), {"s"}, torch.Size([2, 3]), torch.Size([]), {1: "int", "1": "str", 1.5: "float", (1, "t"): "tuple", None: 0, True: 2,
                                                              b"b": 1, 2**70: 3, torch.float32: 4, torch.device("cpu"): 5, 1j: 6, torch.Size([1]): 7}])


@case
def similar_keys():
    return saved({0.1: 1, 0.1000000001: 2, 1e16: 3, 10**16: 4, float("inf"): 5, -0.0: 6, 0: 7, 1e300: 8, 1e300 * (1 + 1e-15): 9, 2.0**63: 10, 2**63: 11})


@case
def counter():
    return saved({"c": collections.Counter("abracadabra"), "empty": collections.Counter()})


@case
def shared_containers():
    inner = [1, {"t": torch.arange(3)}]
    return saved({"a": inner, "b": inner, "c": (inner, inner)})


@case
def deep_lists():
    v = torch.ones(1)
    for _ in range(200):
        v = [v]
    return saved(v)


@case
def attributes_of_a_dict():
    d = collections.OrderedDict(a=torch.ones(2))
    d._metadata = collections.OrderedDict([("", {"version": 2})])
    d.other = [1, 2]
    return saved(d)


@case
def dtypes_and_devices():
    return saved({"dtypes": [torch.float32, torch.bfloat16, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2fnuz,
                             torch.float8_e8m0fnu, torch.float4_e2m1fn_x2, torch.complex32, torch.bool, torch.qint8, torch.quint8, torch.qint32, torch.quint4x2,
                             torch.bits8, torch.uint4, torch.int3],
                  "devices": [torch.device("cpu"), torch.device("cuda"), torch.device("cuda:1"), torch.device("meta"), torch.device("mps:0")]})


@case
def layouts_and_schemes():
    return saved([torch.strided, torch.sparse_coo, torch.sparse_csr, torch.per_tensor_affine, torch.per_channel_symmetric])


# --- tensors ---


@case
def every_dtype():
    names = ("float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex128 complex64 complex32 uint16 uint32 uint64 "
             "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2").split()
    out = {}
    for name in names:
        dtype = getattr(torch, name)
        raw = torch.arange(16 * dtype.itemsize, dtype=torch.uint8)
        if dtype == torch.bool:
            raw = raw % 2
        out[name] = raw.view(dtype).clone() if name != "float4_e2m1fn_x2" else raw.view(dtype)
        out[name + "_0d"] = out[name][3]
        out[name + "_empty"] = out[name][:0]
    return saved(out)


@case
def views():
    t = torch.arange(24.0).reshape(4, 6)
    return saved([t, t.t(), t[1:3], t[:, 2], t[0, 0], t[::2, ::3], t.expand(2, 4, 6), torch.ones(1).expand(5), t[2:2], t[:, 6:], t.unfold(1, 3, 1), t.as_strided((2, 2), (1, 1), 3)])


@case
def one_storage_of_two_dtypes():
    raw = torch.arange(16, dtype=torch.int16)
    return saved({"u16": raw.view(torch.uint16)[1:], "again": raw.view(torch.uint16)})


@case
def conjugate_and_negative():
    c = torch.randn(3, 4, dtype=torch.complex64)
    return saved([c, c.conj(), c.t().conj(), c.conj()[1:, ::2], c.to(torch.complex128).conj(), torch._neg_view(torch.arange(4.0)), torch._neg_view(c).conj()])


@case
def parts_of_complex():
    c = torch.randn(3, 4, dtype=torch.complex64)
    return saved([c.conj().imag, c.imag, c.real])


@case
def empty_tensors():
    return saved([torch.empty(0), torch.empty(3, 0, 2), torch.tensor(5), torch.tensor(True), torch.empty(0, dtype=torch.int64).reshape(0, 5), torch.zeros(2)[2:]])


@case
def channels_last():
    return saved([torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.randn(1, 2, 2, 2, 2).to(memory_format=torch.channels_last_3d)])


@case
def parameters():
    p = torch.nn.Parameter(torch.randn(2, 3))
    q = torch.nn.Parameter(torch.arange(4), requires_grad=False)
    r = torch.nn.Parameter(torch.randn(2))
    r.note = "kept beside it"
    return saved({"p": p, "again": p, "q": q, "data": p.data, "grad": torch.randn(2, requires_grad=True), "buffer": torch.nn.Buffer(torch.ones(3)), "r": r})


@case
def tensor_with_attributes():
    t = torch.arange(3.0)
    t.tag, t.more = "x", [1, {"a": 2}]
    return saved([t, t[1:]])


@case
def gradient_that_has_hooks():
    t = torch.randn(3, requires_grad=True)
    return saved({"leaf": t, "result": (t * 2)})


@case
def sparse():
    i, v = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])
    s = torch.sparse_coo_tensor(i, v, (2, 3))
    dense = torch.tensor([[0, 1.0, 0], [2, 0, 3]])
    return saved({"coo": s, "coalesced": s.coalesce(), "hybrid": torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.ones(2, 4), (3, 4)),
                  "twice": torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.ones(2), (3,)), "none": torch.sparse_coo_tensor((2, 2)),
                  "csr": dense.to_sparse_csr(), "csr64": dense.double().to_sparse_csr(), "int": torch.sparse_coo_tensor(i, v.int(), (2, 3))})


@case
def sparse_columns():
    dense = torch.tensor([[0, 2, 3, 1], [4, 5, 0, 0], [6, 7, 0, 0], [8, 9, 0, 0.0]])
    blocks = torch.kron(torch.eye(2), torch.ones(2, 3))
    return saved({"csc": dense.to_sparse_csc(), "bsr": blocks.to_sparse_bsr((2, 3)), "bsc": blocks.double().to_sparse_bsc((2, 3))})


@case
def quantized():
    x = torch.randn(3, 4)
    return saved({"qint8": torch.quantize_per_tensor(x, 0.1, 3, torch.qint8), "quint8": torch.quantize_per_tensor(x, 0.05, 128, torch.quint8),
                  "qint32": torch.quantize_per_tensor(x, 1e-4, 0, torch.qint32), "turned": torch.quantize_per_tensor(x, 0.1, 3, torch.qint8).t(),
                  "channels": torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, -2]), 0, torch.qint8)})


@case
def meta():
    return saved({"a": torch.empty(2, 3, device="meta")})


@case
def storages():
    t = torch.arange(6, dtype=torch.float32)
    return saved({"untyped": torch.UntypedStorage(5).fill_(7), "typed": t.storage(), "tensor": t[2:], "int": torch.IntStorage([1, 2]),
                  "shared": torch.arange(3, dtype=torch.uint8).untyped_storage(), "none": torch.UntypedStorage(0)})


@case
def many_tensors():
    return saved([torch.full((3,), i) for i in range(700)])


# --- modules and optimizers ---


def trained(optimizer, **options):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    opt = optimizer(net.parameters(), **options)
    for _ in range(3):
        net(torch.randn(5, 3)).pow(2).mean().backward()
        opt.step()
    return net, opt


for _name, _optimizer, _options in [("adam", torch.optim.Adam, {"lr": 1e-3, "amsgrad": True}), ("sgd", torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
                                    ("adamw_tensor_rate", torch.optim.AdamW, {"lr": torch.tensor(0.01)}), ("adagrad", torch.optim.Adagrad, {}),
                                    ("lbfgs_unused", torch.optim.LBFGS, {}), ("rmsprop", torch.optim.RMSprop, {"centered": True, "momentum": 0.1}), ("nadam", torch.optim.NAdam, {})]:

    def _make(optimizer=_optimizer, options=_options, legacy=False):
        if optimizer is torch.optim.LBFGS:
            opt = optimizer([torch.nn.Parameter(torch.ones(2))])
            return saved({"optimizer": opt.state_dict()})
        net, opt = trained(optimizer, **options)
        schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
        return saved({"model": net.state_dict(), "optimizer": opt.state_dict(), "schedule": schedule.state_dict(), "rng": torch.get_rng_state(), "epoch": 3},
                     _use_new_zipfile_serialization=not legacy)

    CASES["training_" + _name] = _make
CASES["legacy_training"] = lambda: _make(torch.optim.Adam, {}, legacy=True)


@case
def ema_and_scaler():
    net, _ = trained(torch.optim.SGD, lr=0.1)
    average = torch.optim.swa_utils.AveragedModel(net)
    return saved({"ema": average.state_dict(), "scaler": torch.amp.GradScaler("cpu", enabled=True).state_dict()})


@case
def recurrent_and_attention():
    return saved([torch.nn.LSTM(3, 4, 2, bidirectional=True).state_dict(), torch.nn.TransformerEncoderLayer(8, 2, 16).state_dict(), torch.nn.Embedding(3, 2).state_dict(),
                  torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2)).state_dict()])


# --- forms of the file ---


def small():
    return {"w": torch.arange(6.0).reshape(2, 3), "t": torch.arange(6.0).reshape(2, 3).t(), "n": [1, -5, 70000, 2**40, 2**70, 1.5, True, None, "x", b"y", (1,), {2}], "big": "y" * 300}


for _protocol in range(6):
    CASES[f"protocol_{_protocol}"] = lambda p=_protocol: saved(small(), pickle_protocol=p)
    CASES[f"legacy_protocol_{_protocol}"] = lambda p=_protocol: saved(small(), pickle_protocol=p, _use_new_zipfile_serialization=False)
    CASES[f"plain_protocol_{_protocol}"] = lambda p=_protocol: saved({"a": [1, 2**40, -1.5, "tä\\x\n", b"b", None, True, (1, 2)]}, pickle_protocol=p)


@case
def legacy_views():
    t = torch.arange(24.0).reshape(4, 6)
    return saved([t, t.t(), t[1:3], t[0, 0], t.to(torch.bfloat16), torch.ones(0), t.bool()], _use_new_zipfile_serialization=False)


for _name, _value in {
        "sparse": lambda: torch.eye(3).to_sparse(), "csr": lambda: torch.eye(3).to_sparse_csr(), "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
        "conjugate": lambda: torch.ones(2, dtype=torch.complex64).conj(), "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        "typed_storage": lambda: torch.ones(2).storage(), "untyped_storage": lambda: torch.ones(2).untyped_storage(), "uint16": lambda: torch.ones(2, dtype=torch.uint16),
        "float8": lambda: torch.ones(2).to(torch.float8_e4m3fn)}.items():
    CASES["legacy_" + _name] = lambda v=_value: saved([v()], _use_new_zipfile_serialization=False)


@case
def deflated():
    out = io.BytesIO()
    file = saved(small())
    with zipfile.ZipFile(io.BytesIO(file)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return out.getvalue()


def swapped(name, data):
    if name.endswith("/byteorder"):
        return b"big"
    if "/data/" in name:
        return b"".join(data[i:i + 4][::-1] for i in range(0, len(data), 4))
    return data


@case
def big_endian():
    return repacked(saved([torch.arange(6.0), torch.arange(6.0)[2:], torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64), torch.arange(3, dtype=torch.int32)]), swapped)


@case
def unknown_byte_order():
    return repacked(saved(small()), lambda name, data: b"middle" if name.endswith("/byteorder") else data)


@case
def no_byte_order():
    return repacked(saved(small()), lambda name, data: None if name.endswith("/byteorder") else data)


@case
def legacy_big_endian_mark():
    file = saved(small(), _use_new_zipfile_serialization=False)
    return file.replace(b"little_endianq\x02\x88", b"little_endianq\x02\x89")


@case
def compression_mark_free():
    torch.serialization.set_crc32_options(False)
    try:
        return saved(small())
    finally:
        torch.serialization.set_crc32_options(True)


# --- what is refused ---


class Evil:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def evil(*call, **options):
    return lambda: saved({"w": torch.ones(2), "x": Evil(*call)}, **options)


CASES["calls_system"] = evil(__import__("os").system, ("true",))
CASES["calls_eval"] = evil(eval, ("1",))
CASES["calls_getattr"] = evil(getattr, ("x", "upper"))
CASES["calls_torch_load"] = evil(torch.load, ("x",))
CASES["calls_import"] = evil(__import__, ("os",))
CASES["calls_system_protocol_4"] = evil(__import__("os").system, ("true",), pickle_protocol=4)
CASES["calls_system_legacy"] = evil(__import__("os").system, ("true",), _use_new_zipfile_serialization=False)
CASES["calls_bytearray_of_size"] = evil(bytearray, (1 << 40,))
CASES["default_dict"] = lambda: saved(collections.defaultdict(list, a=[1]))
CASES["default_dict_of_tensors"] = lambda: saved({"state": collections.defaultdict(dict, {0: {"step": torch.ones(1)}})})
CASES["deque"] = lambda: saved(collections.deque([1]))
CASES["frozen_set"] = lambda: saved(frozenset([1]))
CASES["path"] = lambda: saved(pathlib.PurePosixPath("/x"))
CASES["slice"] = lambda: saved(slice(1, 2))
CASES["range"] = lambda: saved(range(3))
CASES["a_class"] = lambda: saved(torch.nn.Linear)
CASES["a_function"] = lambda: saved(torch.nn.functional.relu)
CASES["generator"] = lambda: saved(torch.Generator())
CASES["nested_tensor"] = lambda: saved(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
CASES["whole_module"] = lambda: saved(torch.nn.Linear(2, 2))
CASES["whole_module_legacy"] = lambda: saved(torch.nn.Linear(2, 2), _use_new_zipfile_serialization=False)
CASES["whole_optimizer"] = lambda: saved(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1))


@case
def numpy_array():
    import numpy as np
    return saved({"a": np.arange(3)})


@case
def numpy_scalar():
    import numpy as np
    return saved({"best": np.float64(0.5)})


@case
def script_archive():
    out = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), out)
    return out.getvalue()


@case
def truncated_zip():
    return saved(small())[:-200]


@case
def record_outside():
    file = saved(small())
    out = io.BytesIO(file)
    with zipfile.ZipFile(out, "a") as z:
        z.writestr("../../outside", b"x")
    return out.getvalue()


@case
def storage_key_outside():
    return repacked(saved({"w": torch.ones(2)}), lambda name, data: data.replace(b"X\x01\x00\x00\x000", b"X\x04\x00\x00\x00../0") if name.endswith("data.pkl") else data)


@case
def missing_record():
    return repacked(saved(small()), lambda name, data: None if "/data/0" in name else data)


@case
def short_record():
    return repacked(saved(small()), lambda name, data: data[:-1] if "/data/0" in name else data)


@case
def long_record():
    return repacked(saved(small()), lambda name, data: data + b"x" if "/data/0" in name else data)


@case
def bomb():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("archive/data.pkl", pickle.dumps("x" * (1 << 28), 2))
        z.writestr("archive/version", "3\n")
    return out.getvalue()


def with_pickle(code):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("archive/data.pkl", code)
        z.writestr("archive/version", "3\n")
    return out.getvalue()


CASES["invalid_utf8"] = lambda: with_pickle(b"\x80\x02X\x02\x00\x00\x00\xff\xfe.")
CASES["latin1_utf8"] = lambda: with_pickle(b"\x80\x02X\x02\x00\x00\x00\xc3\xa4.")
CASES["lone_surrogate"] = lambda: with_pickle(b"\x80\x02X\x03\x00\x00\x00\xed\xa0\x80.")
CASES["overlong_utf8"] = lambda: with_pickle(b"\x80\x02X\x02\x00\x00\x00\xc0\x80.")
CASES["extension"] = lambda: with_pickle(b"\x80\x02\x82\x01.")
CASES["nothing"] = lambda: with_pickle(b"")
CASES["items_after_stop"] = lambda: with_pickle(b"\x80\x02N.garbage")
CASES["unhashable_key"] = lambda: with_pickle(b"\x80\x02}]N\x73.")
CASES["odd_items"] = lambda: with_pickle(b"\x80\x02}(K\x01K\x02K\x03u.")
CASES["append_to_a_tuple"] = lambda: with_pickle(b"\x80\x02)K\x01a.")
CASES["two_on_the_stack"] = lambda: with_pickle(b"\x80\x02K\x01K\x02.")
CASES["python2_string"] = lambda: with_pickle(b"\x80\x02U\x02ab.")
CASES["python2_set"] = lambda: with_pickle(b"\x80\x02c__builtin__\nset\n]K\x01a\x85R.")
CASES["ordered_dict_of_pairs"] = lambda: with_pickle(b"\x80\x02ccollections\nOrderedDict\n]]K\x01aK\x02aa\x85R.")
CASES["ordered_dict_of_tuples"] = lambda: with_pickle(b"\x80\x02ccollections\nOrderedDict\n](K\x01K\x02tK\x03K\x04\x86e\x85R.")
CASES["complex_of_ints"] = lambda: with_pickle(b"\x80\x02cbuiltins\ncomplex\nK\x01K\x02\x86R.")
CASES["empty_complex"] = lambda: with_pickle(b"\x80\x02cbuiltins\ncomplex\n)R.")
CASES["device_of_two"] = lambda: with_pickle(b"\x80\x02ctorch\ndevice\nX\x04\x00\x00\x00cudaK\x01\x86R.")
CASES["unknown_device"] = lambda: with_pickle(b"\x80\x02ctorch\ndevice\nX\x04\x00\x00\x00nosu\x85R.")
CASES["size_of_a_list"] = lambda: with_pickle(b"\x80\x02ctorch\nSize\n]K\x01a\x85R.")
CASES["size_of_texts"] = lambda: with_pickle(b"\x80\x02ctorch\nSize\nX\x01\x00\x00\x00a\x85\x85R.")
CASES["encode_utf8"] = lambda: with_pickle(b"\x80\x02c_codecs\nencode\nX\x02\x00\x00\x00\xc3\xa4X\x05\x00\x00\x00utf-8\x86R.")
CASES["encode_alone"] = lambda: with_pickle(b"\x80\x02c_codecs\nencode\nX\x02\x00\x00\x00\xc3\xa4\x85R.")


def tensor_pickle(offset, sizes, strides, elements=4, before=b"", storage="FloatStorage"):
    def integers(values):
        return b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", v) for v in values) + b"t"

    code = (b"\x80\x02" + before + b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n" + storage.encode() + b"\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu\x8a\x08" +
            struct.pack("<q", elements) + b"tQ\x8a\x08" + struct.pack("<q", offset) + integers(sizes) + integers(strides) + b"\x89ccollections\nOrderedDict\n)RtR.")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("archive/data.pkl", code)
        z.writestr("archive/byteorder", "little")
        z.writestr("archive/data/0", bytes(16))
        z.writestr("archive/version", "3\n")
    return out.getvalue()


CASES["fits"] = lambda: tensor_pickle(0, [2, 2], [2, 1])
CASES["overlaps_itself"] = lambda: tensor_pickle(0, [3, 2], [1, 1])
CASES["too_long"] = lambda: tensor_pickle(0, [5], [1])
CASES["too_far"] = lambda: tensor_pickle(3, [2], [1])
CASES["negative_stride"] = lambda: tensor_pickle(3, [2], [-1])
CASES["negative_offset"] = lambda: tensor_pickle(-1, [2], [1])
CASES["negative_length"] = lambda: tensor_pickle(0, [-2], [1])
CASES["product_too_large"] = lambda: tensor_pickle(0, [1 << 40, 1 << 40], [0, 0])
CASES["empty_with_a_huge_side"] = lambda: tensor_pickle(0, [0, 1 << 62], [1, 1])
CASES["strides_missing"] = lambda: tensor_pickle(0, [2, 2], [1])
CASES["negative_storage"] = lambda: tensor_pickle(0, [1], [1], elements=-1)
CASES["unknown_storage"] = lambda: tensor_pickle(0, [1], [1], storage="NoStorage")


def sparse_pickle(indices, size, values=2):
    """A file whose indices are not what its sizes allow."""
    file = saved(torch.sparse_coo_tensor(torch.tensor([[0, 7]]), torch.ones(values), (8,)))
    wanted = torch.tensor([indices]).numpy().tobytes()

    def change(name, data):
        if len(data) == 16 and data[8:9] == b"\7":
            return wanted
        return data.replace(b"K\x08\x85", b"K" + bytes([size]) + b"\x85") if name.endswith("data.pkl") else data

    return repacked(file, change)


CASES["sparse_in_range"] = lambda: sparse_pickle([0, 3], 8)
CASES["sparse_index_too_large"] = lambda: sparse_pickle([0, 9], 8)
CASES["sparse_index_negative"] = lambda: sparse_pickle([-1, 3], 8)
CASES["sparse_size_too_small"] = lambda: sparse_pickle([0, 7], 3)


# What PyTorch refuses and Brasa reads: newer opcodes, dtypes without a storage class in the older form, tensors of TorchScript's archives,
# archives with records of no meaning.
TAKEN = ("protocol_", "legacy_protocol_", "plain_protocol_", "legacy_uint16", "legacy_float8", "legacy_untyped_storage", "script_archive", "record_outside")
# What PyTorch reads and Brasa refuses by name.
LEFT = ("meta",)


def main():
    folder = pathlib.Path(sys.argv[1])
    files = {pathlib.Path(f).stem: f for f in sys.argv[2:] if f.endswith(".pth")}
    names = [pathlib.Path(n).stem for n in sys.argv[2:]] or list(CASES)
    good, bad = [], []
    for side in ("good", "bad"):
        (folder / side).mkdir(parents=True, exist_ok=True)
    for name in names:
        torch.manual_seed(1)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                file = pathlib.Path(files[name]).read_bytes() if name in files else CASES[name]()
        except Exception as e:
            print(f"not written  {name}: {type(e).__name__}: {str(e)[:120]}")
            continue
        path = folder / "good" / f"{name}.pth"
        path.write_bytes(file)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = torch.load(path, weights_only=True, map_location="cpu")
        except Exception as e:
            torch.serialization._serialization_tls.sparse_tensors_to_validate.clear()
            path.rename(folder / "bad" / f"{name}.pth")
            bad.append({"file": f"{name}.pth", "what": name, "expected": "refuse or load" if name.startswith(TAKEN) else "refuse", "torch": f"{type(e).__name__}: {str(e)[-150:]}"})
            continue
        if name in LEFT:
            path.rename(folder / "bad" / f"{name}.pth")
            bad.append({"file": f"{name}.pth", "what": name, "expected": "refuse", "torch": "loads"})
            continue
        found = Found()
        try:
            path.with_suffix(".json").write_text(json.dumps({"format": "zip", "value": found.value(value)}))
            found.write_tensors(path.with_suffix(".safetensors"))
        except Exception as e:
            print(f"not described  {name}: {type(e).__name__}: {str(e)[:200]}")
            continue
        good.append({"file": f"{name}.pth", "what": name})
    (folder / "good" / "index.json").write_text(json.dumps(good, indent=1))
    (folder / "bad" / "index.json").write_text(json.dumps(bad, indent=1))
    print(f"{len(good)} good, {len(bad)} bad")


if __name__ == "__main__":
    main()
