#!/usr/bin/env bash
# Installs what is needed, builds Lynx, then runs the checks and all tests.
# Where a CUDA compiler is found the CUDA backend is built too; without a GPU
# it is not run (scripts/test_gpu.sh does that).
# usage: scripts/test.sh [--sanitizers]
#   --sanitizers   also the C++ tests under address, undefined-behaviour and
#                  thread sanitizers, each in a build of its own
source "$(dirname "${BASH_SOURCE[0]}")/setup_common.sh"

apt_install "${apt_packages[@]}" libgtest-dev libgmock-dev clang-format
find_cuda
make_environment examples test
build_and_install MLX_BUILD_TESTS=ON MLX_BUILD_CUDA=$cuda

failed=()
# check NAME COMMAND...: runs it and remembers when it fails.
check() {
  local name=$1
  shift
  say "$name"
  "$@" || failed+=("$name")
}

format_cpp() {
  git ls-files "*.h" "*.cpp" "*.cu" "*.cuh" | xargs -r clang-format --dry-run -Werror
}

sanitized() {
  cmake --preset "$1" >/dev/null && cmake --build --preset "$1" | tail -1 &&
    cpp_tests "build/$1"
}

# cpp_tests BUILD_FOLDER: says what fails, and the closing count.
cpp_tests() {
  ctest --test-dir "$1" --output-on-failure --no-tests=error \
    --parallel "$(nproc)" | grep -vE '^ +Start|Test +#.* Passed '
}

check "layers" .venv/bin/python tools/check_layers.py
check "format of C++" format_cpp
check "format of Python" .venv/bin/ruff format --check --quiet .
check "ruff" .venv/bin/ruff check --quiet .
check "pyright" .venv/bin/basedpyright --level error \
  --pythonpath .venv/bin/python
if [ "${1:-}" = --sanitizers ]; then
  check "C++ tests, address and undefined-behaviour sanitizers" sanitized asan
  check "C++ tests, thread sanitizer" sanitized tsan
fi
check "C++ tests" cpp_tests build/python
check "Python tests" .venv/bin/python -m pytest -q

if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
