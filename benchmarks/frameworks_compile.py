"""Compiled functions and training steps of each framework.

Each class is a part of that in `frameworks.py` with the name before "Compile". What
a case makes once (a compiled function, an optimizer) stays in `kept` until the
next case.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from math import prod, sqrt
from typing import Any

from cases_compile import chain

Array = Any
Shapes = list[tuple[int, ...]]
EPS = 1e-5
LEARNING_RATE, WEIGHT_DECAY = 1e-3, 0.01
BETAS = 0.9, 0.999
# Of examples/train_digits.
DROPOUT, DIGITS_RATE, DIGITS_DECAY, RATE_DECAY = 0.4, 2e-3, 0.05, 0.997


class Keeper:
    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def keep(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def forget(self) -> None:
        self.kept.clear()


def split(flat: Array, shapes: Shapes) -> list[Array]:
    """Consecutive parts of a vector."""
    parts: list[Array] = []
    start = 0
    for shape in shapes:
        parts.append(flat[start : start + prod(shape)].reshape(shape))
        start += prod(shape)
    return parts


class MlxCompile(Keeper):
    mx: Any

    def _compiled(self, name: str, function: Callable[..., Array]) -> Any:
        return self.keep(name, lambda: self.mx.compile(function))

    def _done(self, result: Array) -> Array:
        self.mx.eval(result)
        return result

    def _gelu(self, x: Array) -> Array:
        return x * (1 + self.mx.erf(x / sqrt(2))) / 2

    def _softmax(self, x: Array) -> Array:
        e = self.mx.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def _rms_norm(self, x: Array, weight: Array) -> Array:
        size = self.mx.mean(x * x, axis=-1, keepdims=True)
        return x * self.mx.rsqrt(size + EPS) * weight

    def _block(self, x: Array, *weights: Array, heads: int) -> Array:
        query, key, value, out, up, down, norm1, norm2 = weights
        fast = self.mx.fast
        h = fast.rms_norm(x, norm1, EPS)
        q, k, v = (
            (h @ w).reshape(1, len(x), heads, -1).swapaxes(1, 2)
            for w in (query, key, value)
        )
        h = fast.scaled_dot_product_attention(
            q, k, v, scale=q.shape[-1] ** -0.5, mask="causal"
        )
        x = x + h.swapaxes(1, 2).reshape(x.shape) @ out
        return x + self._gelu(fast.rms_norm(x, norm2, EPS) @ up) @ down

    def compiled_gelu(self, x: Array) -> Array:
        return self._done(self._compiled("gelu", self._gelu)(x))

    def compiled_chain(self, *inputs: Array) -> Array:
        compiled = self._compiled("chain", partial(chain, self.mx))
        return self._done(compiled(*inputs))

    def softmax_by_hand(self, x: Array) -> Array:
        return self._done(self._compiled("softmax", self._softmax)(x))

    def rms_norm_by_hand(self, x: Array, weight: Array) -> Array:
        return self._done(self._compiled("rms_norm", self._rms_norm)(x, weight))

    def first_gelu(self, x: Array) -> Array:
        return self._done(self.mx.compile(lambda x: self._gelu(x))(x))

    def first_block(self, *inputs: Array, heads: int) -> Array:
        return self._done(
            self.mx.compile(lambda *inputs: self._block(*inputs, heads=heads))(*inputs)
        )

    def compiled_calls(self, a: Array, b: Array, calls: int) -> None:
        compiled = self._compiled("add", self.mx.add)
        evaluate = self.mx.eval
        for _ in range(calls):
            evaluate(compiled(a, b))

    def adamw(self, weights: Array, gradients: Array, shapes: Shapes) -> Array:
        def make() -> Any:
            optimizers: Any = importlib.import_module("mlx.optimizers")
            copies = [self.mx.array(one) for one in split(weights, shapes)]
            parameters = {"w": copies}
            given = [self.mx.array(one) for one in split(gradients, shapes)]
            optimizer = optimizers.AdamW(LEARNING_RATE, bias_correction=True)
            optimizer.init(parameters)
            state = [parameters, optimizer.state]
            self.mx.eval(state, given)

            @partial(self.mx.compile, inputs=state, outputs=state)
            def step(given: list[Array]) -> None:
                parameters.update(optimizer.apply_gradients({"w": given}, parameters))

            def run() -> Array:
                step(given)
                self.mx.eval(state)
                return parameters["w"][0]

            return run

        return self.keep("adamw", make)()

    def train_digits(self, images: Array, labels: Array, *network: Array) -> Array:
        """The step of examples/train_digits; its loss."""

        def make() -> Any:
            training: Any = importlib.import_module("examples.train_digits.training")
            data: Any = importlib.import_module("examples.train_digits.data")
            one = training.Training(0, images.shape[0], DIGITS_RATE)
            linear = [layer for layer in one.network.layers if "weight" in layer]
            for layer, weight, bias in zip(linear, network[::2], network[1::2]):
                layer.weight, layer.bias = weight, bias
            return partial(one.compiled_step(), data.Digits(images, labels))

        loss = self.keep("digits", make)()
        loss.item()
        return loss


class MlxFastCompile(Keeper):
    """What the library offers for rows."""

    mx: Any

    def softmax_by_hand(self, x: Array) -> Array:
        result = self.mx.softmax(x, axis=-1)
        self.mx.eval(result)
        return result

    def rms_norm_by_hand(self, x: Array, weight: Array) -> Array:
        result = self.mx.fast.rms_norm(x, weight, EPS)
        self.mx.eval(result)
        return result


class TorchEagerCompile(Keeper):
    torch: Any

    def _compiled(self, name: str, function: Callable[..., Array]) -> Any:
        return function

    def _gelu(self, x: Array) -> Array:
        return x * (1 + self.torch.erf(x / sqrt(2))) / 2

    def compiled_gelu(self, x: Array) -> Array:
        return self._compiled("gelu", self._gelu)(x)

    def compiled_chain(self, *inputs: Array) -> Array:
        return self._compiled("chain", partial(chain, self.torch))(*inputs)

    def compiled_calls(self, a: Array, b: Array, calls: int) -> None:
        compiled = self._compiled("add", lambda a, b: a + b)
        for _ in range(calls):
            compiled(a, b)

    def train_digits(self, images: Array, labels: Array, *network: Array) -> Array:
        nn, optim = self.torch.nn, self.torch.optim
        functional = nn.functional

        def make() -> Any:
            layers: list[Any] = []
            for weight, bias in zip(network[::2], network[1::2]):
                layers.append(nn.Linear(*reversed(weight.shape)))
                layers[-1].weight.copy_(weight)
                layers[-1].bias.copy_(bias)
                layers += [nn.ReLU(), nn.Dropout(DROPOUT)]
            model = nn.Sequential(*layers[:-2])
            named = labels.long()
            optimizer = optim.AdamW(
                model.parameters(), DIGITS_RATE, weight_decay=DIGITS_DECAY, fused=True
            )
            schedule = optim.lr_scheduler.ExponentialLR(optimizer, RATE_DECAY)
            loss = self._compiled(
                "loss", lambda: functional.cross_entropy(model(images), named)
            )

            def step() -> Array:
                with self.torch.enable_grad():
                    optimizer.zero_grad()
                    value = loss()
                    value.backward()
                optimizer.step()
                schedule.step()
                value.item()
                return value.detach()

            return step

        return self.keep("digits", make)()


class TorchCompile(TorchEagerCompile):
    def _compiled(self, name: str, function: Callable[..., Array]) -> Any:
        return self.keep(name, lambda: self.torch.compile(function))

    def forget(self) -> None:
        super().forget()
        self.torch._dynamo.reset()

    def _softmax(self, x: Array) -> Array:
        e = self.torch.exp(x - x.amax(-1, keepdim=True))
        return e / e.sum(-1, keepdim=True)

    def _rms_norm(self, x: Array, weight: Array) -> Array:
        size = (x * x).mean(-1, keepdim=True)
        return x * self.torch.rsqrt(size + EPS) * weight

    def _block(self, x: Array, *weights: Array, heads: int) -> Array:
        query, key, value, out, up, down, norm1, norm2 = weights
        functional = self.torch.nn.functional
        h = functional.rms_norm(x, x.shape[-1:], norm1, EPS)
        q, k, v = (
            (h @ w).reshape(1, len(x), heads, -1).swapaxes(1, 2)
            for w in (query, key, value)
        )
        h = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + h.swapaxes(1, 2).reshape(x.shape) @ out
        h = functional.rms_norm(x, x.shape[-1:], norm2, EPS)
        return x + self._gelu(h @ up) @ down

    def softmax_by_hand(self, x: Array) -> Array:
        return self._compiled("softmax", self._softmax)(x)

    def rms_norm_by_hand(self, x: Array, weight: Array) -> Array:
        return self._compiled("rms_norm", self._rms_norm)(x, weight)

    def first_gelu(self, x: Array) -> Array:
        self.torch._dynamo.reset()
        return self.torch.compile(self._gelu)(x)

    def first_block(self, *inputs: Array, heads: int) -> Array:
        self.torch._dynamo.reset()
        return self.torch.compile(partial(self._block, heads=heads))(*inputs)

    def adamw(self, weights: Array, gradients: Array, shapes: Shapes) -> Array:
        def make() -> Any:
            parameters = [one.clone() for one in split(weights, shapes)]
            for one, gradient in zip(parameters, split(gradients, shapes)):
                one.requires_grad_()
                one.grad = gradient.clone()
            optimizer = self.torch.optim.AdamW(
                parameters, LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True
            )
            return optimizer, parameters[0].detach()

        optimizer, first = self.keep("adamw", make)
        optimizer.step()
        return first


class JaxCompile(Keeper):
    jax: Any
    jnp: Any

    def _jitted(self, name: str, function: Callable[..., Array]) -> Any:
        return self.keep(name, lambda: self.jax.jit(function))

    def _gelu(self, x: Array) -> Array:
        return x * (1 + self.jax.scipy.special.erf(x / sqrt(2))) / 2

    def _softmax(self, x: Array) -> Array:
        e = self.jnp.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def _rms_norm(self, x: Array, weight: Array) -> Array:
        size = self.jnp.mean(x * x, axis=-1, keepdims=True)
        return x * self.jax.lax.rsqrt(size + EPS) * weight

    def _block(self, x: Array, *weights: Array, heads: int) -> Array:
        query, key, value, out, up, down, norm1, norm2 = weights
        h = self._rms_norm(x, norm1)
        q, k, v = ((h @ w).reshape(1, len(x), heads, -1) for w in (query, key, value))
        h = self.jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + h.reshape(x.shape) @ out
        return x + self._gelu(self._rms_norm(x, norm2) @ up) @ down

    def compiled_gelu(self, x: Array) -> Array:
        return self._jitted("gelu", self._gelu)(x).block_until_ready()

    def compiled_chain(self, *inputs: Array) -> Array:
        compiled = self._jitted("chain", partial(chain, self.jnp))
        return compiled(*inputs).block_until_ready()

    def softmax_by_hand(self, x: Array) -> Array:
        return self._jitted("softmax", self._softmax)(x).block_until_ready()

    def rms_norm_by_hand(self, x: Array, weight: Array) -> Array:
        compiled = self._jitted("rms_norm", self._rms_norm)
        return compiled(x, weight).block_until_ready()

    def first_gelu(self, x: Array) -> Array:
        return self.jax.jit(lambda x: self._gelu(x))(x).block_until_ready()

    def first_block(self, *inputs: Array, heads: int) -> Array:
        compiled = self.jax.jit(lambda *inputs: self._block(*inputs, heads=heads))
        return compiled(*inputs).block_until_ready()

    def compiled_calls(self, a: Array, b: Array, calls: int) -> None:
        compiled = self._jitted("add", self.jnp.add)
        for _ in range(calls):
            compiled(a, b).block_until_ready()

    def _adamw(
        self, state: Any, gradients: Any, step: Array, rate: Array, decay: float
    ) -> Any:
        """(weights, means, squares) after a step."""
        jnp, trees = self.jnp, self.jax.tree
        beta1, beta2 = BETAS

        def update(w: Array, m: Array, v: Array, g: Array) -> Any:
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g * g
            root = jnp.sqrt(v / (1 - beta2**step)) + 1e-8
            return w * (1 - rate * decay) - rate * m / (1 - beta1**step) / root, m, v

        parts = [trees.leaves(tree) for tree in (*state, gradients)]
        updated = [update(*one) for one in zip(*parts)]
        return tuple(list(one) for one in zip(*updated))

    def adamw(self, weights: Array, gradients: Array, shapes: Shapes) -> Array:
        jnp = self.jnp

        def make() -> Any:
            def step(state: Any, given: Any, count: Array) -> Any:
                count = count + 1
                state = self._adamw(state, given, count, LEARNING_RATE, WEIGHT_DECAY)
                return state, count

            compiled = self.jax.jit(step, donate_argnums=(0, 2))
            parameters = split(weights, shapes)
            given = split(gradients, shapes)
            zeros = [[jnp.zeros(shape) for shape in shapes] for _ in range(2)]
            state: Any = ((parameters, *zeros), jnp.zeros(()))

            def run() -> Array:
                nonlocal state
                state = compiled(state[0], given, state[1])
                self.jax.block_until_ready(state)
                return state[0][0][0]

            return run

        return self.keep("adamw", make)()

    def train_digits(self, images: Array, labels: Array, *network: Array) -> Array:
        jax, jnp = self.jax, self.jnp

        def loss(network: list[Array], key: Array) -> Array:
            x = images
            layers = list(zip(network[::2], network[1::2]))
            keys = jax.random.split(key, len(layers))
            for (w, b), one in zip(layers[:-1], keys):
                x = jnp.maximum(x @ w.T + b, 0)
                kept = jax.random.bernoulli(one, 1 - DROPOUT, x.shape)
                x = jnp.where(kept, x / (1 - DROPOUT), 0)
            x = jax.nn.log_softmax(x @ layers[-1][0].T + layers[-1][1])
            return -jnp.mean(x[jnp.arange(len(labels)), labels])

        def step(state: Any, count: Array, key: Array) -> Any:
            key, now = jax.random.split(key)
            value, given = jax.value_and_grad(loss)(state[0], now)
            rate = DIGITS_RATE * RATE_DECAY**count
            state = self._adamw(state, given, count + 1, rate, DIGITS_DECAY)
            return (state, count + 1, key), value

        def make() -> Any:
            compiled = jax.jit(step, donate_argnums=(0, 1, 2))
            weights = [jnp.array(one) for one in network]
            zeros = [[jnp.zeros_like(one) for one in network] for _ in range(2)]
            state: Any = ((weights, *zeros), jnp.zeros(()), jax.random.key(0))

            def run() -> Array:
                nonlocal state
                state, value = compiled(*state)
                value.item()
                return value

            return run

        return self.keep("digits", make)()
