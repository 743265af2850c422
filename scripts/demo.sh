#!/usr/bin/env bash
# Installs what is needed, builds Lynx and asks SmolLM2-135M a question.
# usage: scripts/demo.sh [QUESTION]
source "$(dirname "${BASH_SOURCE[0]}")/setup_common.sh"

question=${*:-Why is the sky blue? Answer in two sentences.}
apt_install "${apt_packages[@]}"
make_environment examples
build_and_install MLX_BUILD_TESTS=OFF
say "$question"
.venv/bin/python -m examples.chat --prompt "$question"
