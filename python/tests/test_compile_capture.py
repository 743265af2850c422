"""compile with state: what a function finds besides its arguments, and what it
changes."""

import functools

import mlx.core as mx
import mlx.nn as nn
import pytest


class TestCapture:
    def test_returned_list(self):
        state = []

        def fun(x, y):
            z = x + y
            state.append(z)
            return mx.exp(z), state

        _, state = mx.compile(fun)(mx.array(1.0), mx.array(2.0))
        assert [z.item() for z in state] == [3]

    def test_outputs(self):
        state = []

        @functools.partial(mx.compile, outputs=state)
        def fun(x, y):
            z = x + y
            state.append(z)
            return mx.exp(z), state

        fun(mx.array(1.0), mx.array(2.0))
        assert [z.item() for z in state] == [3]
        fun(mx.array(2.0), mx.array(2.0))
        assert [z.item() for z in state] == [4]

    def test_not_declared_keeps_the_old_value(self):
        state = [mx.array(1.0)]
        compiled = mx.compile(lambda x: x + state[0])
        assert compiled(mx.array(1.0)).item() == 2
        state[0] = mx.array(5.0)
        assert compiled(mx.array(1.0)).item() == 2

    def test_arguments_found_elsewhere_are_an_error(self):
        x = mx.array([1.0, 2.0])
        with pytest.raises(ValueError, match="also an argument"):
            mx.compile(lambda a: a + (x + 1))(x)
        y = mx.exp(x)
        with pytest.raises(ValueError, match="also an argument"):
            mx.compile(lambda a: a + y)(x)
        mx.eval(y)
        assert mx.compile(lambda a: a + y)(x).shape == (2,)

    def test_as_argument(self):
        compiled = mx.compile(lambda x, state: x + state[0])
        assert compiled(mx.array(1.0), [mx.array(1.0)]).item() == 2
        assert compiled(mx.array(1.0), [mx.array(5.0)]).item() == 6

    def test_inputs(self):
        state = {"deep": [{"value": mx.array(1.0)}, "text", 3], "none": None}
        compiled = mx.compile(lambda x: x + state["deep"][0]["value"], inputs=state)
        assert compiled(mx.array(1.0)).item() == 2
        state["deep"][0]["value"] = mx.array(5.0)
        assert compiled(mx.array(1.0)).item() == 6
        state["deep"][0] = {"value": mx.array([7.0])}
        assert compiled(mx.array(1.0)).tolist() == [8]

    def test_in_place_updates(self):
        state = [mx.array([1.0, 2.0, 3.0]), {"n": mx.array(0)}]

        def step(x):
            state[0] += x
            state[0][1] = 7.0
            state[1]["n"] = state[1]["n"] + 1
            return state[0].sum()

        plain = [step(mx.array(1.0)).item() for _ in range(3)]
        expected = [state[0].tolist(), state[1]["n"].item()]
        state[0], state[1]["n"] = mx.array([1.0, 2.0, 3.0]), mx.array(0)
        compiled = mx.compile(step, inputs=state, outputs=state)
        assert [compiled(mx.array(1.0)).item() for _ in range(3)] == plain
        assert [state[0].tolist(), state[1]["n"].item()] == expected

    def test_state_that_grows(self):
        state = {}

        def step(x):
            state["m"] = state.get("m", mx.array(0.0)) + x
            return state["m"]

        compiled = mx.compile(step, inputs=state, outputs=state)
        assert [compiled(mx.array(2.0)).item() for _ in range(4)] == [2, 4, 6, 8]
        assert compiled.cache_info()["misses"] == 2

    def test_random_state(self):
        def draw():
            return mx.random.uniform(shape=(4,))

        mx.random.seed(3)
        expected = [draw().tolist() for _ in range(3)]
        captured = mx.compile(draw, inputs=mx.random.state, outputs=mx.random.state)
        mx.random.seed(3)
        assert [captured().tolist() for _ in range(3)] == expected
        mx.random.seed(3)
        alone = mx.compile(draw)
        first = alone().tolist()
        assert first == expected[0]
        assert alone().tolist() == first

    def test_random_state_survives_an_error(self):
        def fail():
            mx.random.uniform(shape=(4,))
            raise KeyError

        mx.random.seed(1)
        expected = mx.random.uniform(shape=(4,)).tolist()
        mx.random.seed(1)
        compiled = mx.compile(fail, inputs=mx.random.state, outputs=mx.random.state)
        with pytest.raises(KeyError):
            compiled()
        assert mx.random.uniform(shape=(4,)).tolist() == expected

    def test_dropout(self):
        layer = nn.Dropout(0.5)
        x = mx.ones((8, 8))
        state = mx.random.state
        compiled = mx.compile(layer, inputs=state, outputs=state)
        mx.random.seed(5)
        expected = [layer(x).tolist() for _ in range(3)]
        mx.random.seed(5)
        assert [compiled(x).tolist() for _ in range(3)] == expected
