#!/usr/bin/env python3
"""Calls as networks make them, each with its gradient where it has one: what sizes drawn at random miss.

    tools/peers/network_operators.py > calls.jsonl
    tools/peers/operators.py calls.jsonl
"""
import argparse
import json


def floats(name, shape, low=-1.0, high=1.0, dtype="float32"):
    return {"tensor": name, "dtype": dtype, "shape": shape, "low": low, "high": high}


def places(name, shape, last):
    return floats(name, shape, 0, last, "int64")


def bools(name, shape):
    return floats(name, shape, 0, 1, "bool")


def x(*shape):
    return floats("x", list(shape))


# An overload, its arguments, and what has a gradient.
CALLS = [
    ("adaptive_avg_pool2d", [x(8, 64, 32, 32), [7, 7]], ["x"]),
    ("adaptive_max_pool2d", [x(8, 64, 32, 32), [7, 7]], ["x"]),
    ("max_pool2d", [x(8, 64, 56, 56), [3, 3], [2, 2], [1, 1]], ["x"]),
    ("max_pool2d", [x(8, 64, 56, 56), [2, 2]], ["x"]),
    ("avg_pool2d", [x(8, 64, 56, 56), [2, 2]], ["x"]),
    ("avg_pool2d", [x(8, 64, 56, 56), [3, 3], [2, 2], [1, 1]], ["x"]),
    ("max_pool1d", [x(16, 64, 1000), [3], [2]], ["x"]),
    ("max_pool3d", [x(2, 16, 16, 32, 32), [2, 2, 2]], ["x"]),
    ("avg_pool3d", [x(2, 16, 16, 32, 32), [2, 2, 2]], ["x"]),
    ("conv_transpose2d.input", [x(4, 64, 28, 28), floats("w", [64, 32, 2, 2]), None, [2, 2]], ["x", "w"]),
    ("conv_transpose2d.input", [x(4, 64, 16, 16), floats("w", [64, 32, 4, 4]), None, [2, 2], [1, 1]], ["x", "w"]),
    ("conv1d", [x(8, 64, 500), floats("w", [64, 64, 3]), None, [1], [1]], ["x", "w"]),
    ("conv1d", [x(4, 1, 16000), floats("w", [64, 1, 80]), None, [16]], ["x", "w"]),
    ("conv2d", [x(4, 3, 112, 112), floats("w", [32, 3, 7, 7]), None, [2, 2], [3, 3]], ["x", "w"]),
    ("conv2d", [x(4, 64, 28, 28), floats("w", [64, 1, 3, 3]), None, [1, 1], [1, 1], [1, 1], 64], ["x", "w"]),
    ("conv2d", [x(4, 64, 28, 28), floats("w", [64, 1, 7, 7]), None, [1, 1], [3, 3], [1, 1], 64], ["x", "w"]),
    ("conv2d", [x(4, 64, 28, 28), floats("w", [64, 64, 3, 3]), None, [1, 1], [2, 2], [2, 2]], ["x", "w"]),
    ("conv2d", [x(4, 64, 56, 56), floats("w", [3, 64, 1, 1])], ["x", "w"]),
    ("conv2d", [x(2, 32, 64, 64), floats("w", [3, 32, 3, 3]), None, [1, 1], [1, 1]], ["x", "w"]),
    ("conv2d", [x(4, 1, 64, 64), floats("w", [16, 1, 5, 5])], ["x", "w"]),
    ("conv3d", [x(1, 8, 16, 28, 28), floats("w", [16, 8, 3, 3, 3]), None, [1, 1, 1], [1, 1, 1]], ["x", "w"]),
    ("grid_sampler_2d", [x(4, 16, 64, 64), floats("g", [4, 64, 64, 2]), 0, 0, False], ["x", "g"]),
    ("softmax.int", [x(4, 21, 128, 128), 1], ["x"]),
    ("log_softmax.int", [x(4, 21, 128, 128), 1], ["x"]),
    ("softmax.int", [x(64, 1000), 1], ["x"]),
    ("cross_entropy_loss", [x(4, 21, 64, 64), places("t", [4, 64, 64], 20)], ["x"]),
    ("cross_entropy_loss", [x(512, 1000), places("t", [512], 999)], ["x"]),
    ("layer_norm", [x(64, 197, 192), [192], floats("w", [192]), floats("b", [192])], ["x", "w", "b"]),
    ("group_norm", [x(8, 64, 32, 32), 8, floats("w", [64]), floats("b", [64])], ["x", "w", "b"]),
    ("instance_norm", [x(8, 32, 48, 48), floats("w", [32]), floats("b", [32]), None, None, True, 0.1, 1e-5, False], ["x", "w", "b"]),
    ("batch_norm", [x(8, 64, 32, 32), floats("w", [64]), floats("b", [64]), None, None, True, 0.1, 1e-5, False], ["x", "w", "b"]),
    ("rms_norm", [x(64, 197, 192), [192], floats("w", [192])], ["x", "w"]),
    ("pixel_shuffle", [x(4, 64, 32, 32), 2], ["x"]),
    ("pixel_unshuffle", [x(4, 16, 64, 64), 2], ["x"]),
    ("im2col", [x(4, 16, 64, 64), [3, 3], [1, 1], [1, 1], [1, 1]], ["x"]),
    ("roll", [x(8, 64, 56, 56), [3, 3], [2, 3]], ["x"]),
    ("flip", [x(8, 64, 56, 56), [3]], ["x"]),
    ("flip", [x(8, 64, 56, 56), [2]], ["x"]),
    ("pad", [x(8, 64, 56, 56), [1, 1, 1, 1]], ["x"]),
    ("reflection_pad2d", [x(8, 32, 56, 56), [3, 3, 3, 3]], ["x"]),
    ("replication_pad2d", [x(8, 32, 56, 56), [3, 3, 3, 3]], ["x"]),
    ("cumsum", [x(512, 1000), 1], ["x"]),
    ("cumsum", [x(512, 1000), 0], ["x"]),
    ("cumprod", [x(512, 1000), 1], ["x"]),
    ("logcumsumexp", [x(512, 1000), 1], ["x"]),
    ("cummax", [x(512, 1000), 1]),
    ("embedding", [floats("w", [10000, 256]), places("i", [32, 128], 9999)], ["w"]),
    ("index_select", [x(1000, 512), 0, places("i", [2000], 999)], ["x"]),
    ("index_add", [x(1000, 256), 0, places("i", [2000], 999), floats("s", [2000, 256])], ["x", "s"]),
    ("scatter_add", [x(1000, 64), 0, places("i", [5000, 64], 999), floats("s", [5000, 64])], ["x", "s"]),
    ("gather", [x(1000, 500), 1, places("i", [1000, 100], 499)], ["x"]),
    ("scatter_reduce.two", [x(1000, 64), 0, places("i", [5000, 64], 999), floats("s", [5000, 64]), "amax"]),
    ("topk", [x(512, 1000), 10], ["x"]),
    ("sort", [x(512, 1000)], ["x"]),
    ("argsort", [x(512, 1000)]),
    ("argmax", [x(512, 1000), 1]),
    ("argmax", [x(4, 21, 128, 128), 1]),
    ("max.dim", [x(4, 21, 128, 128), 1], ["x"]),
    ("max.dim", [x(512, 1000), 1], ["x"]),
    ("min.dim", [x(512, 1000), 0]),
    ("median.dim", [x(512, 1000), 1]),
    ("kthvalue", [x(512, 1000), 5, 1]),
    ("quantile.scalar", [x(512, 1000), 0.5, 1]),
    ("one_hot", [places("i", [20000], 99), 100]),
    ("nonzero", [places("x", [1000, 1000], 1)]),
    ("masked_select", [x(1000, 1000), bools("m", [1000, 1000])]),
    ("masked_fill.Scalar", [x(1000, 1000), bools("m", [1000, 1000]), 0], ["x"]),
    ("where.self", [bools("m", [1000, 1000]), x(1000, 1000), floats("y", [1000, 1000])], ["x", "y"]),
    ("tril", [x(16, 512, 512)], ["x"]),
    ("cat", [[x(8, 64, 56, 56), floats("y", [8, 64, 56, 56])], 1], ["x", "y"]),
    ("stack", [[x(1000, 1000), floats("y", [1000, 1000])], 2], ["x", "y"]),
    ("repeat", [x(8, 64, 1, 56), [1, 1, 56, 1]], ["x"]),
    ("repeat_interleave.self_int", [x(8, 64, 1000), 2, 2], ["x"]),
    ("tile", [x(64, 100), [100, 2]], ["x"]),
    ("var.correction", [x(512, 1000), [1]], ["x"]),
    ("std.correction", [x(512, 1000), [0]], ["x"]),
    ("norm.ScalarOpt_dim", [x(512, 1000), 2, [1]], ["x"]),
    ("logsumexp", [x(512, 1000), [1]], ["x"]),
    ("amax", [x(8, 64, 56, 56), [2, 3]], ["x"]),
    ("mean.dim", [x(8, 64, 56, 56), [2, 3]], ["x"]),
    ("sum.dim_IntList", [x(8, 64, 56, 56), [0, 2, 3]], ["x"]),
    ("prod.dim_int", [x(512, 1000), 1], ["x"]),
    ("cdist", [x(300, 64), floats("y", [300, 64])], ["x", "y"]),
    ("pdist", [x(300, 64)], ["x"]),
    ("cosine_similarity", [x(1000, 512), floats("y", [1000, 512])], ["x", "y"]),
    ("gelu", [x(1000, 1000)], ["x"]),
    ("glu", [x(1000, 1000)], ["x"]),
    ("prelu", [x(8, 64, 56, 56), floats("w", [64])], ["x", "w"]),
    ("silu", [x(1000, 1000)], ["x"]),
    ("elu", [x(1000, 1000)], ["x"]),
    ("smooth_l1_loss", [x(1000, 1000), floats("y", [1000, 1000])], ["x"]),
    ("binary_cross_entropy_with_logits", [x(1000, 500), floats("y", [1000, 500], low=0.0)], ["x"]),
    ("kl_div", [x(1000, 500), floats("y", [1000, 500], low=0.1)], ["x"]),
    ("stft", [x(8, 16000), 400, 160, 400, floats("w", [400]), False, True, True], ["x"]),
    ("fft_rfft2", [x(8, 16, 64, 64)], ["x"]),
    ("fft_fft", [x(64, 1000)], ["x"]),
    ("bmm", [x(64, 64, 64), floats("y", [64, 64, 64])], ["x", "y"]),
    ("bmm", [x(64, 16, 32), floats("y", [64, 32, 100])], ["x", "y"]),
    ("baddbmm", [floats("c", [32, 64, 64]), x(32, 64, 64), floats("y", [32, 64, 64])], ["x", "y"]),
    ("mv", [x(2000, 1000), floats("v", [1000])], ["x", "v"]),
    ("addr", [floats("c", [1000, 1000]), floats("a", [1000]), floats("b", [1000])], ["a", "b"]),
    ("outer", [floats("a", [1000]), floats("b", [1000])], ["a", "b"]),
    ("scaled_dot_product_attention", [x(4, 8, 128, 64), floats("k", [4, 8, 128, 64]), floats("v", [4, 8, 128, 64])], ["x", "k", "v"]),
    ("linear", [x(16, 1024), floats("w", [1024, 1024]), floats("b", [1024])], ["x", "w", "b"]),
    ("linear", [x(1, 1024), floats("w", [4096, 1024]), floats("b", [4096])]),
    ("transpose_copy.int", [x(64, 197, 192), 1, 2]),
    ("permute_copy", [x(8, 64, 56, 56), [0, 2, 3, 1]]),
    ("permute_copy", [x(8, 56, 56, 64), [0, 3, 1, 2]]),
    ("bincount", [places("i", [200000], 99)]),
    ("histc", [x(500000), 100]),
    ("searchsorted.Tensor", [floats("b", [1], low=0, high=0), x(200000)]),
    ("unfold", [x(64, 4000), 1, 64, 32], ["x"]),
    ("renorm", [x(1000, 512), 2, 0, 1.0], ["x"]),
    ("_weight_norm", [x(512, 1000), floats("g", [512, 1])], ["x", "g"]),
    ("roll", [x(1000, 1000), [1], [1]]),
    ("diff", [x(1000, 1000)], ["x"]),
    ("trapezoid.dx", [x(1000, 1000)], ["x"]),
    ("cov", [x(64, 5000)], ["x"]),
    ("channel_shuffle", [x(8, 64, 56, 56), 4], ["x"]),
    ("native_dropout", [x(1000, 1000), 0.1, True], ["x"]),
    ("multi_margin_loss", [x(2000, 100), places("t", [2000], 99)], ["x"]),
    ("ctc_loss.IntList", [floats("lp", [50, 16, 20], low=-4.0, high=-1.0), places("t", [16, 15], 19), [50]*16, [15]*16], ["lp"]),
]


def lines():
    for name, args, *gradients in CALLS:
        call = {"overload": f"aten.{name if '.' in name else name + '.default'}", "args": args, "kwargs": {}}
        yield call
        if gradients:
            yield {**call, "gradients": gradients[0]}


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for call in lines():
        print(json.dumps(call))
