"""The models of `brasa bench` as functions of JAX: parameters are trees of arrays, drawn by NumPy."""
import jax
import jax.numpy as jnp
import numpy

DRAWN = numpy.random.default_rng(0)


def normal(*shape, scale=0.02):
    return jnp.asarray(DRAWN.normal(size=shape, scale=scale), jnp.float32)


def integers(limit, *shape):
    return jnp.asarray(DRAWN.integers(0, limit, shape))


def linear(inputs, outputs):
    return {"w": normal(inputs, outputs), "b": jnp.zeros(outputs)}


def apply_linear(p, x):
    return x @ p["w"] + p["b"]


def norm(width):
    return {"scale": jnp.ones(width), "shift": jnp.zeros(width)}


def apply_norm(p, x, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + eps) * p["scale"] + p["shift"]


def block(width):
    return {"norm1": norm(width), "norm2": norm(width), "qkv": linear(width, 3 * width), "out": linear(width, width),
            "fc1": linear(width, 4 * width), "fc2": linear(4 * width, width)}


def apply_block(p, x, heads, causal):
    n, t, width = x.shape
    q, k, v = jnp.moveaxis(apply_linear(p["qkv"], apply_norm(p["norm1"], x)).reshape(n, t, 3, heads, -1), 2, 0)
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=causal).reshape(n, t, width)
    x = x + apply_linear(p["out"], mixed)
    hidden = jax.nn.gelu(apply_linear(p["fc1"], apply_norm(p["norm2"], x)), approximate=causal)
    return x + apply_linear(p["fc2"], hidden)


def gpt(depth=4, width=384, vocabulary=8192, context=256):
    return {"embed": normal(vocabulary, width), "position": normal(context, width), "norm": norm(width),
            "head": normal(width, vocabulary), "blocks": [block(width) for _ in range(depth)]}


def apply_gpt(p, tokens, heads=6):
    x = p["embed"][tokens] + p["position"][: tokens.shape[1]]
    for b in p["blocks"]:
        x = apply_block(b, x, heads, causal=True)
    x = apply_norm(p["norm"], x) @ p["head"]
    return x.reshape(-1, x.shape[-1])


def vit(depth=12, width=192, patch=16, size=224, classes=1000):
    tokens = (size // patch) ** 2 + 1
    return {"patches": linear(3 * patch * patch, width), "class": normal(1, 1, width),
            "position": normal(1, tokens, width), "norm": norm(width), "head": linear(width, classes),
            "blocks": [block(width) for _ in range(depth)]}


def apply_vit(p, images, heads=3, patch=16):
    n, c, size, _ = images.shape
    side = size // patch
    x = images.reshape(n, c, side, patch, side, patch).transpose(0, 2, 4, 1, 3, 5).reshape(n, side * side, -1)
    x = apply_linear(p["patches"], x)
    x = jnp.concatenate([jnp.broadcast_to(p["class"], (n, 1, x.shape[-1])), x], 1) + p["position"]
    for b in p["blocks"]:
        x = apply_block(b, x, heads, causal=False)
    return apply_linear(p["head"], apply_norm(p["norm"], x)[:, 0])


def mlp_block(width=512, hidden=2048):
    return {"n": norm(width), "a": linear(width, hidden), "b": linear(hidden, width)}


def apply_mlp_block(p, x):
    return x + apply_linear(p["b"], jax.nn.gelu(apply_linear(p["a"], apply_norm(p["n"], x)), approximate=False))


def apply_pointwise(p, x, y, z):
    return jnp.where(x > 0, jnp.tanh(x * y + z) * jax.nn.sigmoid(z), jnp.minimum(jnp.exp(x), 4) - y) * 0.5 + x


def apply_softmax_norm(p, x):
    return jax.nn.softmax(apply_norm(p, x) * 0.125, -1)


def lstm(inputs=64, hidden=256, classes=10):
    layer = lambda n: {"x": linear(n, 4 * hidden), "h": linear(hidden, 4 * hidden)}
    return {"layers": [layer(inputs), layer(hidden)], "head": linear(hidden, classes)}


def apply_lstm(p, x):
    steps = x.swapaxes(0, 1)
    for layer in p["layers"]:
        projected = apply_linear(layer["x"], steps)

        def step(state, row):
            h, c = state
            i, f, g, o = jnp.split(row + apply_linear(layer["h"], h), 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[0], layer["h"]["w"].shape[0]))
        _, steps = jax.lax.scan(step, (zero, zero), projected)
    return apply_linear(p["head"], steps[-1])


# Name: the function, its parameters, its input and target.
TRAINED = {
    "vit_tiny_train_b8": lambda: (apply_vit, vit(), normal(8, 3, 224, 224, scale=1), integers(1000, 8)),
    "gpt_train_b4_t256": lambda: (apply_gpt, gpt(), integers(8192, 4, 256), integers(8192, 1024)),
    "lstm_train_b16_t128": lambda: (apply_lstm, lstm(), normal(16, 128, 64, scale=1), integers(10, 16)),
}
# Name: the function, its parameters, its inputs.
INFERRED = {
    "vit_tiny_infer_b8": lambda: (apply_vit, vit(), normal(8, 3, 224, 224, scale=1)),
    "vit_tiny_infer_b1": lambda: (apply_vit, vit(), normal(1, 3, 224, 224, scale=1)),
    "gpt_infer_b1_t256": lambda: (apply_gpt, gpt(), integers(8192, 1, 256)),
    "mlp_block_infer": lambda: (apply_mlp_block, mlp_block(), normal(512, 512, scale=1)),
    "pointwise_4M": lambda: (apply_pointwise, {}, *(normal(4 << 20, scale=1) for _ in range(3))),
    "pointwise_64": lambda: (apply_pointwise, {}, *(normal(64, scale=1) for _ in range(3))),
    "layernorm_softmax_4096x1024": lambda: (apply_softmax_norm, norm(1024), normal(4096, 1024, scale=1)),
}
