#!/usr/bin/env bash
# Runs the whole Python test suite with the gpu as the default device, and the
# C++ tests of the CUDA backend. For a machine with an NVIDIA GPU and a CUDA 13
# toolkit; the package must have been built with it:
#   cmake --preset cuda && cmake --build --preset cuda
# usage: scripts/test_gpu.sh [--sanitizer] [PYTEST_ARGUMENT...]
#   --sanitizer    a chosen set under compute-sanitizer (memcheck, racecheck)
#                  in place of the suite
# BUILD and PYTHON choose another build folder and interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/cuda}
python=${PYTHON:-python3}
export PYTHONPATH=$build/python${PYTHONPATH:+:$PYTHONPATH}

"$python" - <<'PY'
import sys
import mlx.core as mx

if not mx.cuda.is_available():
    sys.exit("no usable gpu: is libmlx_cuda beside libmlx, is there a driver?")
print("device:", mx.device_info()["device_name"])
assert mx.default_device() == mx.Device(mx.gpu)
PY

if [ "${1:-}" = --sanitizer ]; then
  for tool in memcheck racecheck; do
    echo "== compute-sanitizer --tool $tool"
    compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "$python" tools/gpu_sanitizer_set.py
  done
  exit
fi

# The others are about the CPU: their own operations have no gpu kernel.
if [ -x "$build/tests/mlx_tests" ]; then
  "$build/tests/mlx_tests" --gtest_brief=1 --gtest_filter='Cuda*'
fi
"$python" -m pytest -q -p no:cacheprovider "$@"
