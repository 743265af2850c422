"""Compiled functions of many operations, called again and again: from some call
on a backend may submit a recording of an earlier one, and nobody must notice."""

from __future__ import annotations

import gc
import threading

import mlx.core as mx
import numpy as np
import pytest

CALLS = 8  # more than a backend watches before it records


def values(*shape: int, seed: int = 0) -> mx.array:
    return mx.random.normal(shape, key=mx.random.key(seed))


def network(x: mx.array, w: mx.array, rounds: int = 16) -> mx.array:
    """Operations that do not become one fused part."""
    for i in range(rounds):
        x = mx.tanh(x @ w) + x * (0.1 * i)
        x = mx.softmax(x.reshape(-1, x.shape[-1]), -1).reshape(x.shape)
    return x


def same(got: mx.array, want: mx.array) -> None:
    np.testing.assert_allclose(np.array(got), np.array(want), 1e-5, 1e-6)


def test_each_call_sees_its_own_inputs() -> None:
    f = mx.compile(network)
    w = values(16, 16)
    for i in range(CALLS):
        x = values(3, 16, seed=i + 1)
        same(f(x, w), network(x, w))


def test_numbers_of_the_host_are_read_at_each_call() -> None:
    f = mx.compile(lambda x, w, by: network(x, w) * by)
    x, w = values(3, 16), values(16, 16, seed=1)
    want = network(x, w)
    for i in range(CALLS):
        same(f(x, w, mx.array(float(i))), want * i)


def test_inputs_that_change_their_layout() -> None:
    f = mx.compile(network)
    w = values(16, 16)
    wide = values(16, 32, seed=3)
    mx.eval(w, wide)
    for i in range(2 * CALLS):
        layouts = [wide[:, :16], wide[:, ::2], wide[:, 16:].T, wide[::-1, :16]]
        x = layouts[(i // 3) % 4]
        same(f(x, w), network(mx.array(np.array(x)), w))


def test_inputs_in_other_memory_after_a_while() -> None:
    f = mx.compile(network)
    for seed in range(4):
        w = values(16, 16, seed=seed)
        x = values(64, 16, seed=seed + 10)
        for _ in range(CALLS):
            same(f(x, w), network(x, w))


def test_state_goes_on() -> None:
    w = values(16, 16)
    state = {"x": values(64, 16, seed=2), "calls": mx.array(0)}

    def step(scale: mx.array) -> mx.array:
        state["x"] = network(state["x"], w) * scale
        state["calls"] = state["calls"] + 1
        return mx.sum(state["x"])

    compiled = mx.compile(step, inputs=state, outputs=state)
    plain = state["x"]
    for i in range(2 * CALLS):
        scale = mx.array(1 + 0.01 * i)
        total = compiled(scale)
        plain = network(plain, w) * scale
        same(total, mx.sum(plain))
        same(state["x"], plain)
        assert state["calls"].item() == i + 1


def test_state_that_somebody_else_holds_is_not_written() -> None:
    state = [mx.zeros((64, 64)), mx.array(0)]

    def step(x: mx.array) -> mx.array:
        for i in range(8):
            row = mx.tanh(x @ state[0][:8, :8]) + i
            state[0] = mx.slice_update(state[0], row, state[1], (0,))
            state[1] = state[1] + 8
        state[1] = mx.array(0) * state[1]
        return mx.sum(state[0])

    compiled = mx.compile(step, inputs=state, outputs=state)
    kept = []
    for i in range(3 * CALLS):
        x = values(8, 8, seed=i)
        total = compiled(x)
        mx.eval(total, state)
        if i % 5 == 4:
            kept.append((state[0], np.array(state[0])))
        for held, before in kept:
            np.testing.assert_array_equal(np.array(held), before)


def test_results_stay_what_they_were() -> None:
    f = mx.compile(network)
    w = values(16, 16)
    given = [values(3, 16, seed=i) for i in range(2 * CALLS)]
    results = [f(x, w) for x in given]
    mx.eval(results)
    for x, result in zip(given, results):
        same(result, network(x, w))


def test_results_that_are_no_results() -> None:
    one = mx.array([1.0, 2.0])

    def f(x: mx.array, w: mx.array):
        y = network(x, w)
        return x, y, y, one, y.T, y[:1], w[1:, :4]

    compiled = mx.compile(f)
    w = values(16, 16)
    for i in range(CALLS):
        x = values(3, 16, seed=i)
        for got, want in zip(compiled(x, w), f(x, w)):
            same(got, want)


def test_results_that_nobody_wants() -> None:
    def f(x: mx.array, w: mx.array):
        y = network(x, w)
        return y, y + 1, y + 2

    compiled = mx.compile(f)
    w = values(16, 16)
    for i in range(CALLS):
        x = values(3, 16, seed=i)
        results = compiled(x, w)
        same(results[i % 3], network(x, w) + i % 3)
        same(results[(i + 1) % 3], network(x, w) + (i + 1) % 3)


def test_random_numbers_go_on() -> None:
    def f(x: mx.array, w: mx.array) -> mx.array:
        return network(x, w) + mx.random.uniform(shape=x.shape)

    compiled = mx.compile(f, inputs=mx.random.state, outputs=mx.random.state)
    x, w = values(3, 16), values(16, 16, seed=1)
    mx.random.seed(7)
    want = [np.array(f(x, w)) for _ in range(CALLS)]
    mx.random.seed(7)
    for i in range(CALLS):
        np.testing.assert_allclose(np.array(compiled(x, w)), want[i], 1e-5, 1e-6)


def test_results_feed_the_next_call() -> None:
    f = mx.compile(network)
    w = values(16, 16)
    x = plain = values(3, 16, seed=4)
    for _ in range(2 * CALLS):
        x = f(x, w)
        mx.async_eval(x)
        plain = network(plain, w)
    same(x, plain)


def test_an_index_out_of_range_does_not_spoil_later_calls() -> None:
    def f(x: mx.array, w: mx.array, mask: mx.array) -> mx.array:
        y = network(x, w)
        y[mask] = mx.array([1.0, 2.0])
        return y

    compiled = mx.compile(f)
    w, x = values(16, 16), values(3, 16)
    few = mx.array(np.arange(48).reshape(3, 16) < 2)
    many = mx.array(np.arange(48).reshape(3, 16) < 5)
    for _ in range(CALLS):
        same(compiled(x, w, few), f(x, w, few))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="too few values"):
            mx.eval(compiled(x, w, many))
        same(compiled(x, w, few), f(x, w, few))


@pytest.mark.parametrize("later", [False, True])
def test_on_the_cpu_an_error_is_told_each_time(later: bool) -> None:
    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    try:

        def f(x: mx.array, mask: mx.array):
            y = network(x, w)
            y[mask] = mx.array([1.0, 2.0])
            return y, y + 1

        w, x = values(16, 16), values(3, 16)
        mask = mx.array(np.arange(48).reshape(3, 16) < 5)
        mx.eval(w)
        one, other = mx.compile(f)(x, mask)
        if later:
            mx.async_eval(one)
        for result in (one, one, other):
            with pytest.raises(RuntimeError):
                mx.eval(result)
        same(x, values(3, 16))
    finally:
        mx.set_default_device(before)


def test_threads_take_turns() -> None:
    f = mx.compile(network)
    w = values(16, 16)
    mx.eval(w)
    device = mx.default_device()
    wrong = []

    def work(seed: int) -> None:
        mx.set_default_device(device)
        try:
            for i in range(2 * CALLS):
                x = values(3, 16, seed=100 * seed + i)
                same(f(x, w), network(x, w))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_is_given_back_with_the_function() -> None:
    w = values(64, 64)
    x = values(256, 64, seed=1)
    mx.eval(x, w)
    mx.synchronize()
    before = mx.get_active_memory()
    f = mx.compile(lambda x, w: network(x, w))  # a trace of its own
    seen = []
    for _ in range(4 * CALLS):
        mx.eval(f(x, w))
        seen.append(mx.get_active_memory())
    assert seen[-1] == seen[-CALLS]
    del f
    gc.collect()
    assert mx.get_active_memory() <= before
