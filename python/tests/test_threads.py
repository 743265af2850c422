"""Several threads, the end of the interpreter, forks."""

import os
import subprocess
import sys
import textwrap
import threading

import mlx.core as mx
import pytest


def on_threads(count, work):
    """Runs work(0) ... work(count - 1) at once; raises the first error."""
    barrier = threading.Barrier(count)
    errors = []

    def run(number):
        try:
            barrier.wait(20)
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


class TestSharedGraph:
    def test_values(self):
        for _ in range(50):
            x = mx.arange(100) * 2
            quotient, remainder = mx.divmod(x, 7)
            total = mx.sum(quotient * 7 + remainder)
            seen = [0] * 4

            def work(number, total=total, x=x, seen=seen):
                seen[number] = total.item() + mx.sum(x).item()

            on_threads(4, work)
            assert seen == [4 * 4950] * 4

    def test_assigned_meanwhile(self):
        a = mx.zeros(1000)

        def work(number):
            nonlocal a
            for _ in range(100):
                if number == 0:
                    a += 1
                elif number == 1:
                    assert len(a.tolist()) == 1000
                elif number == 2:
                    assert "float32" in str(a)
                else:
                    assert memoryview(a).shape == (1000,)

        on_threads(4, work)
        assert mx.all(a == 100).item()

    def test_derivatives(self):
        weight = mx.grad(lambda x: mx.sum(x * x))(mx.arange(4.0))
        seen = [None] * 4

        def work(number):
            loss = mx.value_and_grad(lambda x: mx.sum(x * weight))
            value, grad = loss(mx.full(4, number))
            seen[number] = (value.item(), grad.tolist())

        on_threads(4, work)
        assert seen == [(12.0 * i, [0, 2, 4, 6]) for i in range(4)]


def run_program(source, **variables):
    """What a program of its own prints; fails if it hangs or does not end well."""
    # Python 3.12 and later warn of any fork in a process with threads.
    quiet = "-Wignore:This process:DeprecationWarning"
    done = subprocess.run(
        [sys.executable, quiet, "-c", textwrap.dedent(source)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


class TestEnd:
    def test_pending_work(self):
        source = """
            import mlx.core as mx
            x = mx.random.normal((300, 300))
            for _ in range(20):
                x = mx.tanh(x @ x)
            kept = [mx.exp(x, stream=mx.new_stream(mx.cpu)) for _ in range(4)]
            mx.async_eval(x, kept)
            print("end")
        """
        assert run_program(source) == "end\n"

    def test_failed_work(self):
        source = """
            import mlx.core as mx

            @mx.custom_function
            def f(x):
                return x + 1

            y = f(mx.ones(3))
            mx.async_eval(mx.grad(lambda x: mx.sum(f(x)))(mx.ones(3)), y)
            print("end")
        """
        assert run_program(source) == "end\n"

    @pytest.mark.parametrize("wait", [0.02, 0.1])
    def test_daemon_threads(self, wait):
        source = f"""
            import threading, time
            import mlx.core as mx
            shared = mx.random.normal((64, 64))

            def work():
                while True:
                    x = mx.tanh(shared @ shared)
                    mx.async_eval(x)
                    mx.eval(mx.sum(x))
                    mx.sum(x, stream=mx.cpu).item()

            for _ in range(4):
                threading.Thread(target=work, daemon=True).start()
            time.sleep({wait})
            print("end")
        """
        assert run_program(source) == "end\n"

    def test_nothing_is_left(self):
        source = """
            import mlx.core as mx
            import mlx.nn as nn

            @mx.custom_function
            def double(x):
                return 2 * x + 0 * len(str(double))

            @double.vjp
            def double(x, cotangent, out):
                return 2 * cotangent

            step = mx.value_and_grad(lambda x: mx.sum(double(x)))
            rows = mx.vmap(mx.checkpoint(double))
            layer = nn.Linear(2, 2)
            kept = [layer(step(mx.ones(2))[1]), rows(mx.ones((2, 2)))]
            kept.append(kept)
            mx.async_eval(kept[:2])
            print("end")
        """
        assert run_program(source, MLX_LEAK_WARNINGS="1") == "end\n"


class TestFork:
    def test_lost_work(self):
        source = """
            import os
            import mlx.core as mx
            x = mx.random.normal((500, 500))
            for _ in range(40):
                x = mx.tanh(x @ x)
            mx.async_eval(x)
            child = os.fork()
            if child == 0:
                try:
                    x.tolist()
                except RuntimeError as error:
                    print(str(error), flush=True)
                print(mx.sum(mx.ones(1000) + 1).item(), flush=True)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            print(x.shape)
        """
        # The child of a process that used the gpu has none.
        printed = run_program(source, MLX_DISABLE_CUDA="1")
        lost, works, parent = printed.splitlines()
        assert "forked" in lost
        assert works == "2000.0"
        assert parent == "(500, 500)"

    def test_evaluated_before(self):
        with mx.stream(mx.cpu):
            x = mx.arange(1000) + 1
            mx.eval(x)
            child = os.fork()
            if child == 0:
                good = mx.sum(x * 2).item() == 1001000
                os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0
