"""Writes blocks.gguf: quantized tensors beside what they mean.

Tensor `x.want` holds, as float32, the values of `x.weight` as ggml's own
Python package dequantizes them. Run with the `gguf` package installed:

    python tests/io/data/make_blocks.py
"""

from pathlib import Path

import gguf
import numpy as np

rng = np.random.default_rng(7)
writer = gguf.GGUFWriter(Path(__file__).with_name("blocks.gguf"), "blocks")
writer.add_float64("test.float64", 1.5)
writer.add_bool("test.bool", True)
writer.add_array("test.words", ["one", "", "drei"])
writer.add_array("test.numbers", [1, -2, 3])
for name in ["Q4_0", "Q4_1", "Q8_0"]:
    kind = gguf.GGMLQuantizationType[name]
    values = rng.normal(size=(3, 64)).astype(np.float32)
    values *= np.float32([[1e-7], [1.0], [900.0]])  # subnormal scales too
    blocks = gguf.quants.quantize(values, kind)
    want = gguf.quants.dequantize(blocks, kind)
    writer.add_tensor(f"{name}.weight", blocks, raw_dtype=kind)
    writer.add_tensor(f"{name}.want", want)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
