"""Says whether the extension works, and what one pass over memory gains."""

import time

import mlx.core as mx
from mlx_sample_extensions import axpby, simple_axpby


def milliseconds(function, x, y, rounds):
    def run():
        mx.eval(function(x, y, 4.0, 2.0))

    for _ in range(5):
        run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * sorted(times)[rounds // 2]


a = mx.ones((3, 4))
b = mx.ones((3, 4))
c = axpby(a, b, 4.0, 2.0, stream=mx.cpu)

print(f"c shape: {c.shape}")
print(f"c dtype: {c.dtype}")
print(f"c correct: {mx.all(c == 6.0).item()}")

x = mx.random.normal((4096, 4096))
y = mx.random.normal((4096, 4096))
mx.eval(x, y)
simple = milliseconds(simple_axpby, x, y, 50)
custom = milliseconds(axpby, x, y, 50)
print(f"Simple axpby: {simple:.3f} ms | Custom axpby: {custom:.3f} ms")
