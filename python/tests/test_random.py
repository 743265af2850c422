"""Random numbers: known values of keys, the moments of the distributions,
batches of keys, the thread's state."""

from __future__ import annotations

import threading

import mlx.core as mx
import numpy as np
import pytest

COUNT = 40000
# A mean of COUNT samples of unit deviation leaves this with a chance of 1e-9.
BAND = 6.2 / COUNT**0.5


def numbers(a: mx.array) -> np.ndarray:
    return np.array(a.astype(mx.float32))


# ---- keys and bits -----------------------------------------------------------


def test_key_holds_the_seed_high_word_first():
    assert mx.random.key(0).tolist() == [0, 0]
    key = mx.random.key(2**40 + 5)
    assert key.dtype == mx.uint32
    assert key.tolist() == [256, 5]


def test_split_of_known_keys():
    assert mx.random.split(mx.random.key(0)).tolist() == [
        [4146024105, 967050713],
        [2718843009, 1272950319],
    ]
    assert mx.random.split(mx.random.key(42)).tolist() == [
        [2465931498, 3679230171],
        [255383827, 267815257],
    ]
    assert mx.random.split(mx.random.key(1), num=5).shape == (5, 2)


def test_uniform_of_known_keys():
    key = mx.random.key(0)
    assert mx.random.uniform(key=key).item() == np.float32(0.418457121)
    four = [0.965321481, 0.225159034, 0.633029997, 0.296381831]
    assert mx.random.uniform(shape=(4,), key=key).tolist() == np.float32(four).tolist()
    four = [0.574144423, 0.856637537, 0.0594611801, 0.0623556003]
    found = mx.random.uniform(shape=(4,), key=mx.random.key(42))
    assert found.tolist() == np.float32(four).tolist()


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (0, [0.872414351, 0.443020999, 0.277080536, 0.786595047]),
        (42, [0.285170257, 0.812091768, 0.175652578, 0.928418934]),
    ],
)
def test_uniform_after_a_seed(seed, expected):
    mx.random.seed(seed)
    first = mx.random.uniform(shape=(4,))
    second = mx.random.uniform(shape=(4,))
    assert first.tolist() == np.float32(expected).tolist()
    assert second.tolist() != first.tolist()


def test_randint_and_permutation_of_a_known_key():
    key = mx.random.key(0)
    assert mx.random.randint(0, 10, (6,), key=key).tolist() == [5, 0, 7, 8, 5, 4]
    assert mx.random.permutation(6, key=key).tolist() == [1, 5, 0, 4, 2, 3]


@pytest.mark.parametrize(
    "draw",
    [
        lambda key: mx.random.uniform(shape=(7,), key=key),
        lambda key: mx.random.normal((7,), key=key),
        lambda key: mx.random.normal((7,), mx.complex64, key=key),
        lambda key: mx.random.laplace((7,), key=key),
        lambda key: mx.random.gumbel((7,), key=key),
        lambda key: mx.random.truncated_normal(-1, 2, (7,), key=key),
        lambda key: mx.random.bernoulli(0.3, (7,), key=key),
        lambda key: mx.random.randint(-5, 5, (7,), key=key),
        lambda key: mx.random.categorical(mx.zeros((7, 4)), key=key),
        lambda key: mx.random.permutation(7, key=key),
    ],
)
def test_a_key_gives_the_same_numbers_and_keys_differ(draw):
    key = mx.random.key(11)
    assert draw(key).tolist() == draw(key).tolist()
    assert draw(key).tolist() != draw(mx.random.key(12)).tolist()


def test_keys_are_checked():
    for bad in (
        mx.array([0, 1]),
        mx.array([0], mx.uint32),
        mx.zeros((2, 2), mx.uint32),
    ):
        with pytest.raises(ValueError, match="not a key"):
            mx.random.uniform(key=bad)
    with pytest.raises(TypeError):
        mx.random.seed(-1)


# ---- distributions -----------------------------------------------------------


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_uniform_stays_below_its_bound(dtype):
    x = mx.random.uniform(-2, 3, (COUNT,), dtype, key=mx.random.key(7))
    assert x.dtype == dtype
    values = numbers(x)
    assert values.min() >= -2
    assert values.max() <= 3
    assert abs(values.mean() - 0.5) < BAND * 5 / 12**0.5 + 0.01
    unit = numbers(mx.random.uniform(shape=(COUNT,), dtype=dtype))
    assert unit.min() >= 0
    assert unit.max() < 1


def test_uniform_bounds_broadcast():
    low = mx.array([0.0, 10.0])
    x = numbers(mx.random.uniform(low, low + 1, (100, 2)))
    assert np.all((x >= [0, 10]) & (x <= [1, 11]))
    with pytest.raises(ValueError, match="broadcast"):
        mx.random.uniform(low, 1, (3,))


def test_uniform_takes_real_floating_types_only():
    with pytest.raises(ValueError, match="type not accepted"):
        mx.random.uniform(dtype=mx.int32)
    with pytest.raises(RuntimeError, match="float64"):
        mx.random.uniform(dtype=mx.float64)
    with pytest.raises(ValueError, match="integer type"):
        mx.random.randint(0, 5, dtype=mx.float32)


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_normal_moments(dtype):
    x = mx.random.normal((COUNT,), dtype, loc=1.5, scale=2, key=mx.random.key(1))
    assert x.dtype == dtype
    values = (numbers(x) - 1.5) / 2
    assert abs(values.mean()) < BAND + 0.004
    assert abs(values.var() - 1) < BAND * 2**0.5 + 0.02
    assert abs((values**4).mean() - 3) < BAND * 96**0.5 + 0.1


def test_normal_of_array_parameters():
    loc = mx.array([0.0, 100.0])
    x = numbers(mx.random.normal((COUNT // 10, 2), loc=loc, scale=mx.array(0.5)))
    np.testing.assert_allclose(x.mean(0), [0, 100], atol=0.06)
    np.testing.assert_allclose(x.std(0), [0.5, 0.5], atol=0.05)


def test_complex_normal_has_unit_variance_in_all():
    x = np.array(mx.random.normal((COUNT,), mx.complex64, key=mx.random.key(2)))
    assert abs(np.mean(np.abs(x) ** 2) - 1) < 2 * BAND
    assert abs(x.mean()) < 2 * BAND


def test_truncated_normal_keeps_to_its_bounds():
    x = numbers(mx.random.truncated_normal(-1, 1, (COUNT,), key=mx.random.key(5)))
    assert x.min() >= -1
    assert x.max() <= 1
    # Variance 1 - 2 phi(1) / (2 Phi(1) - 1).
    assert abs(x.var() - 0.29112509) < BAND
    assert mx.random.truncated_normal(mx.zeros((2, 1)), mx.ones((3,))).shape == (2, 3)


def test_laplace_and_gumbel_moments():
    x = numbers(mx.random.laplace((COUNT,), loc=2, scale=3, key=mx.random.key(8)))
    assert abs(x.mean() - 2) < BAND * 3 * 2**0.5
    assert abs(np.abs(x - 2).mean() - 3) < BAND * 3
    g = numbers(mx.random.gumbel((COUNT,), key=mx.random.key(9)))
    assert abs(g.mean() - np.euler_gamma) < BAND * 1.3
    assert abs(g.var() - np.pi**2 / 6) < BAND * 6


def test_bernoulli_frequencies():
    p = mx.array([0.0, 0.2, 1.0])
    x = mx.random.bernoulli(p, (COUNT, 3), key=mx.random.key(4))
    assert x.dtype == mx.bool_
    np.testing.assert_allclose(np.array(x).mean(0), [0, 0.2, 1], atol=BAND)
    assert mx.random.bernoulli().shape == ()
    with pytest.raises(ValueError, match="floating"):
        mx.random.bernoulli(1)


def test_randint_covers_its_range():
    x = np.array(mx.random.randint(-3, 4, (COUNT,), key=mx.random.key(6)))
    counts = np.bincount(x + 3, minlength=7)
    assert len(counts) == 7
    # Chi-squared of 6 degrees of freedom; 60 has a chance below 1e-10.
    assert ((counts - COUNT / 7) ** 2 / (COUNT / 7)).sum() < 60


def test_categorical_frequencies_by_either_way():
    chances = np.array([0.1, 0.0, 0.6, 0.3])
    with np.errstate(divide="ignore"):
        logits = mx.array(np.log(chances).astype(np.float32))
    # One distribution: by the running sum of its weights.
    one = mx.random.categorical(logits, num_samples=COUNT, key=mx.random.key(1))
    # Many: by the largest of the perturbed logits.
    rows = mx.broadcast_to(logits, (COUNT, 4))
    many = mx.random.categorical(rows, key=mx.random.key(2))
    for drawn in (one, many):
        assert drawn.shape == (COUNT,)
        assert drawn.dtype == mx.uint32
        frequency = np.bincount(np.array(drawn), minlength=4) / COUNT
        np.testing.assert_allclose(frequency, chances, atol=BAND)
        assert frequency[1] == 0


def test_categorical_shapes():
    logits = mx.zeros((3, 5, 4))
    assert mx.random.categorical(logits).shape == (3, 5)
    assert mx.random.categorical(logits, axis=1).shape == (3, 4)
    assert mx.random.categorical(logits, axis=0, num_samples=7).shape == (5, 4, 7)
    assert mx.random.categorical(logits, shape=(2, 3, 5)).shape == (2, 3, 5)
    with pytest.raises(ValueError, match="both shape and num_samples"):
        mx.random.categorical(logits, shape=(3, 5), num_samples=2)
    with pytest.raises(ValueError, match="out of range"):
        mx.random.categorical(logits, axis=3)


def test_permutation_keeps_every_element():
    x = mx.arange(24).reshape(4, 6)
    rows = np.array(mx.random.permutation(x, key=mx.random.key(1)))
    assert sorted(rows[:, 0]) == [0, 6, 12, 18]
    columns = np.array(mx.random.permutation(x, axis=1, key=mx.random.key(1)))
    assert sorted(columns[0]) == list(range(6))
    assert np.all(np.diff(columns, axis=0) == 6)
    assert sorted(mx.random.permutation(1000).tolist()) == list(range(1000))


def test_empty_shapes():
    assert mx.random.uniform(shape=(0, 3)).tolist() == []
    assert mx.random.normal((0,)).shape == (0,)
    assert mx.random.permutation(0).shape == (0,)


# ---- state -------------------------------------------------------------------


def test_state_is_a_list_of_one_key():
    state = mx.random.state
    mx.random.seed(0)
    assert len(state) == 1
    assert state[0].tolist() == state[-1].tolist() == [0, 0]
    assert [key.tolist() for key in state] == [[0, 0]]
    for index in (1, -2):
        with pytest.raises(IndexError):
            state[index]
        with pytest.raises(IndexError):
            state[index] = mx.random.key(0)


def test_state_can_be_saved_and_restored():
    mx.random.seed(5)
    mx.random.uniform()
    saved = mx.random.state[0]
    first = mx.random.normal((3,)).tolist()
    assert mx.random.state[0].tolist() != saved.tolist()
    mx.random.state[0] = saved
    assert mx.random.normal((3,)).tolist() == first
    mx.random.state[0] = mx.random.key(0)
    assert mx.random.uniform(shape=(1,)).item() == np.float32(
        mx.random.uniform(shape=(1,), key=mx.random.split(mx.random.key(0))[1]).item()
    )


def test_state_counts_as_a_tree():
    mx.random.seed(1)
    mx.random.uniform()
    mx.eval(mx.random.state, {"more": [mx.random.state]})
    with pytest.raises(ValueError, match="not a key"):
        mx.random.state[0] = mx.zeros((3,))
        mx.random.uniform()
    mx.random.seed(0)


def test_threads_have_their_own_state():
    mx.random.seed(3)
    before = mx.random.state[0].tolist()
    found = []

    def draw():
        mx.random.seed(0)
        found.append(mx.random.uniform(shape=(4,)).tolist())

    thread = threading.Thread(target=draw)
    thread.start()
    thread.join()
    mx.random.seed(0)
    assert found == [mx.random.uniform(shape=(4,)).tolist()]
    mx.random.seed(3)
    assert mx.random.state[0].tolist() == before


def test_randint_of_an_empty_range_and_of_bool():
    assert mx.random.randint(10, -10, (5,)).tolist() == [10] * 5
    low, high = mx.array([5, 0]), mx.array([3, 4])
    drawn = np.array(mx.random.randint(low, high, (50, 2)))
    assert (drawn[:, 0] == 5).all()
    assert set(drawn[:, 1].tolist()) == {0, 1, 2, 3}
    key = mx.random.key(0)
    assert set(mx.random.randint(0, 2, (50,), mx.bool_, key).tolist()) == {False, True}
    assert not any(mx.random.randint(0, 1, (50,), mx.bool_, key).tolist())
