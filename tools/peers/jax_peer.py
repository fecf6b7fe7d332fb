"""JAX's jit: a model's call, or a whole training step with Adam, whose state it updates in place."""
import os

import jax
import jax.numpy as jnp


def version():
    return jax.__version__


def workloads():
    from jax_models import INFERRED, TRAINED
    return [*TRAINED, *INFERRED]


def mean_cross_entropy(scores, target):
    return (jax.nn.logsumexp(scores, -1) - jnp.take_along_axis(scores, target[:, None], -1)[:, 0]).mean()


def adam_step(function, rate=1e-4, beta1=0.9, beta2=0.999, eps=1e-8):
    def step(state, x, target):
        parameters, m, v, t = state
        gradients = jax.grad(lambda p: mean_cross_entropy(function(p, x), target))(parameters)
        t = t + 1
        m = jax.tree.map(lambda a, g: beta1 * a + (1 - beta1) * g, m, gradients)
        v = jax.tree.map(lambda a, g: beta2 * a + (1 - beta2) * g * g, v, gradients)
        update = lambda p, a, b: p - rate * (a / (1 - beta1**t)) / (jnp.sqrt(b / (1 - beta2**t)) + eps)
        return jax.tree.map(update, parameters, m, v), m, v, t

    return jax.jit(step, donate_argnums=0)


def prepare(workload, o):
    # XLA has as many threads as the process may use processors.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: o.threads])
    if o.cache:
        jax.config.update("jax_compilation_cache_dir", o.cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    from jax_models import INFERRED, TRAINED
    if workload in INFERRED:
        function, *arguments = INFERRED[workload]()

        def forward():
            jitted = jax.jit(function)
            return lambda: jax.block_until_ready(jitted(*arguments))

        return forward
    function, parameters, x, target = TRAINED[workload]()
    zeros = lambda: jax.tree.map(jnp.zeros_like, parameters)
    state = (parameters, zeros(), zeros(), jnp.float32(0))

    def training():
        step = adam_step(function)

        def call():
            nonlocal state
            state = jax.block_until_ready(step(state, x, target))

        return call

    return training
