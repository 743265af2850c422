"""Devices, streams, evaluation and memory of mlx.core."""

import threading

import mlx.core as mx
import pytest


class TestDevices:
    def test_identity(self):
        cpu = mx.Device(mx.cpu)
        assert repr(cpu) == "Device(cpu, 0)"
        assert cpu == mx.cpu
        assert mx.cpu == cpu
        assert cpu != mx.Device(mx.cpu, 1)
        assert cpu != 3
        assert mx.cpu != 0
        assert cpu.type == mx.DeviceType.cpu
        assert mx.cpu.name == "cpu"
        assert {cpu: 1}[mx.Device(mx.cpu)] == 1

    def test_queries(self):
        assert mx.is_available(mx.cpu)
        assert mx.device_count(mx.cpu) == 1
        info = mx.device_info(mx.cpu)
        assert {"device_name", "architecture"} <= set(info)
        assert mx.device_info() == mx.device_info(mx.default_device())

    def test_default(self):
        before = mx.default_device()
        try:
            mx.set_default_device(mx.cpu)
            assert mx.default_device() == mx.cpu
        finally:
            mx.set_default_device(before)

    def test_of_other_makers(self, capfd):
        assert not mx.metal.is_available()
        assert mx.cuda.is_available() == mx.is_available(mx.gpu)
        assert mx.metal.start_capture("trace") is None
        assert mx.metal.stop_capture() is None
        assert mx.metal.get_active_memory() >= 0
        assert mx.metal.get_active_memory() >= 0
        assert capfd.readouterr().err.count("get_active_memory is deprecated") == 1


class TestStreams:
    def test_identity(self):
        default = mx.default_stream(mx.cpu)
        assert default == mx.default_stream(mx.Device(mx.cpu))
        other = mx.new_stream(mx.cpu)
        assert other != default
        assert other.device == mx.cpu
        assert repr(other) == f"Stream(Device(cpu, 0), {other.index})"
        assert default != 3

    def test_argument(self):
        s = mx.new_stream(mx.cpu)
        local = mx.new_thread_local_stream(mx.cpu)
        for where in (None, s, local, mx.cpu, mx.Device(mx.cpu)):
            assert mx.add(1, 2, stream=where).item() == 3
        with pytest.raises(TypeError):
            mx.add(1, 2, stream=3)

    def test_scope(self):
        before = mx.default_stream(mx.cpu)
        s = mx.new_stream(mx.cpu)
        with mx.stream(s):
            assert mx.default_stream(mx.cpu) == s
            with mx.StreamContext(before):
                assert mx.default_stream(mx.cpu) == before
            assert mx.default_stream(mx.cpu) == s
        assert mx.default_stream(mx.cpu) == before
        with pytest.raises(RuntimeError):
            mx.stream(None)

    def test_default_can_be_set(self):
        before = mx.default_stream(mx.cpu)
        s = mx.new_stream(mx.cpu)
        mx.set_default_stream(s)
        assert mx.default_stream(mx.cpu) == s
        mx.set_default_stream(before)

    def test_synchronize(self):
        mx.async_eval(mx.ones(1000) * 2)
        mx.synchronize()
        mx.synchronize(mx.cpu)

    def test_one_default_per_thread(self):
        seen = []
        thread = threading.Thread(
            target=lambda: seen.append(
                (mx.default_stream(mx.cpu).index, mx.add(1, 2).item())
            )
        )
        thread.start()
        thread.join()
        assert seen[0][0] != mx.default_stream(mx.cpu).index
        assert seen[0][1] == 3


class TestEval:
    def test_trees(self):
        a, b, c = (mx.ones(3) * k for k in (1, 2, 3))
        mx.eval(a, [b, None, {"c": (c, 3)}], "text")
        mx.async_eval({"a": [a]})
        assert mx.get_array_buffer_size(a, [b, {"c": c}, a]) >= 3 * a.nbytes

    def test_other_threads_run_meanwhile(self):
        """Waiting for an array does not hold the interpreter."""
        steps = []
        stop = threading.Event()

        def count():
            while not stop.is_set():
                steps.append(1)

        thread = threading.Thread(target=count)
        thread.start()
        a = mx.ones(1 << 21)
        for _ in range(20):
            a = mx.sin(a)
        before = len(steps)
        mx.eval(a)
        during = len(steps) - before
        stop.set()
        thread.join()
        assert during > 0


class TestMemory:
    def test_counts(self):
        mx.clear_cache()
        before = mx.get_active_memory()
        a = mx.ones(1 << 20)
        mx.eval(a)
        assert mx.get_active_memory() >= before + a.nbytes
        assert mx.get_peak_memory() >= mx.get_active_memory()
        del a
        assert mx.get_active_memory() < before + (1 << 22)
        mx.reset_peak_memory()

    def test_limits(self):
        limit = mx.set_memory_limit(1 << 30)
        assert mx.get_memory_limit() == 1 << 30
        assert mx.set_memory_limit(limit) == 1 << 30
        cache = mx.set_cache_limit(0)
        assert mx.get_cache_memory() == 0
        assert mx.set_cache_limit(cache) == 0
        assert mx.set_wired_limit(100) == 0
