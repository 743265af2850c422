"""examples/train_digits: it learns, and a resumed training is the same training."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx.utils import tree_flatten

from examples.train_digits.__main__ import main, train
from examples.train_digits.data import batches, load
from examples.train_digits.training import Training

ROOT = Path(__file__).resolve().parents[2]
RESULT = re.compile(
    r"epoch (\d+), step (\d+): test accuracy (0\.\d{4}|1\.0000)(, \d+ steps/s)?\n"
)


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def result(capsys: pytest.CaptureFixture[str], *arguments: Any) -> re.Match[str]:
    status, out, errors = run(capsys, *arguments)
    assert status == 0, errors
    found = RESULT.fullmatch(out)
    assert found is not None, out
    return found


def losses_of(file: Path) -> np.ndarray:
    return np.array(mx.load(str(file), format="safetensors")["losses"])


# Data


def test_parts_are_all_images_once() -> None:
    from sklearn.datasets import load_digits

    training, test = load()
    images, labels = load_digits(return_X_y=True)
    assert training.images.shape == (1438, 64) and test.images.shape == (359, 64)
    both = np.concatenate([np.array(training.images), np.array(test.images)])
    named = np.concatenate([np.array(training.labels), np.array(test.labels)])
    rows = sorted((*image, label) for image, label in zip(both * 16, named))
    assert rows == sorted((*image, label) for image, label in zip(images, labels))


def test_order_is_that_of_seed_and_epoch() -> None:
    digits, _ = load()

    def labels(*arguments: int) -> list[list[int]]:
        return [b.labels.tolist() for b in batches(digits, *arguments)]

    first = labels(100, 5, 0)
    assert [len(b) for b in first] == [100] * 14
    assert first == labels(100, 5, 0)
    assert first != labels(100, 5, 1) and first != labels(100, 6, 0)
    (whole,) = batches(digits, 1438, 5, 2)
    assert sorted(whole.labels.tolist()) == sorted(digits.labels.tolist())
    place = {tuple(image): n for image, n in zip(digits.images.tolist(), range(1438))}
    for image, label in zip(whole.images.tolist(), whole.labels.tolist()):
        assert digits.labels[place[tuple(image)]].item() == label


# Training


def test_program_learns_and_draws(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.train_digits", "--device", "cpu"]
    command += ["--plot", str(tmp_path / "loss.png")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = RESULT.fullmatch(done.stdout)
    assert found is not None and found[4] is not None, done.stdout
    assert (found[1], found[2]) == ("25", str(25 * 22))
    assert float(found[3]) >= 0.97
    assert "training: 100%" in done.stderr and f"{25 * 22}/{25 * 22}" in done.stderr
    assert (tmp_path / "loss.png").read_bytes()[:4] == b"\x89PNG"


def test_resumed_training_has_the_same_curve(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    common = ["--seed", 3, "--batch-size", 128, "--learning-rate", 0.003]
    result(capsys, *common, "--epochs", 4, "--save", whole)
    result(capsys, *common, "--epochs", 2, "--save", part)
    mx.random.seed(99)
    found = result(capsys, "--epochs", 4, "--resume", part, "--save", part)
    assert found[2] == "44"
    assert losses_of(whole).shape == (44,)
    np.testing.assert_array_equal(losses_of(part), losses_of(whole))
    wanted, got = (
        mx.load(str(f), format="safetensors", return_metadata=True)
        for f in (whole, part)
    )
    assert got[1] == wanted[1]
    assert got[0].keys() == wanted[0].keys()
    for name, array in wanted[0].items():
        assert mx.array_equal(got[0][name], array).item(), name
    # Nothing is left of how the file came to be.
    assert sorted(p.name for p in tmp_path.iterdir()) == ["part", "whole"]


def test_checkpoint_holds_everything(tmp_path: Path) -> None:
    digits, test = load()
    training = Training(4, 256, 0.01)
    train(training, digits, test, 1, None)
    training.save(tmp_path / "file")
    twin = Training.load(tmp_path / "file")
    assert (twin.seed, twin.batch_size, twin.epoch) == (4, 256, 1)
    assert twin.losses == training.losses and len(twin.losses) == 5
    assert twin.optimizer.step.item() == 5
    for one, other in (
        (training.network.parameters(), twin.network.parameters()),
        (training.optimizer.state, twin.optimizer.state),
    ):
        wanted, got = dict(tree_flatten(one)), dict(tree_flatten(other))
        assert wanted.keys() == got.keys()
        assert all(mx.array_equal(wanted[path], got[path]).item() for path in got)


def test_dropout_draws_anew_in_every_step() -> None:
    """The random state is captured: same weights and batch, other losses."""
    digits, _ = load()
    training = Training(0, 64, 1e-30)
    training.optimizer.weight_decay = 0.0
    step = training.compiled_step()
    (batch, *_) = batches(digits, 64, 0, 0)
    losses = {step(batch).item() for _ in range(5)}
    assert len(losses) == 5
    mx.random.seed(0)
    first = step(batch).item()
    mx.random.seed(0)
    assert step(batch).item() == first


def test_seed_decides(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    curves = []
    for i, seed in enumerate((1, 1, 2)):
        file = tmp_path / str(i)
        result(capsys, "--seed", seed, "--epochs", 1, "--save", file)
        curves.append(losses_of(file).tolist())
    assert curves[0] == curves[1] != curves[2]


def test_learning_rate_of_a_resumed_training(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    result(capsys, "--epochs", 1, "--save", file)
    result(capsys, "--epochs", 2, "--resume", file, "--save", tmp_path / "kept")
    result(
        capsys,
        *("--epochs", 2, "--resume", file, "--learning-rate", 0.5),
        *("--save", tmp_path / "changed"),
    )
    kept, changed = losses_of(tmp_path / "kept"), losses_of(tmp_path / "changed")
    assert (kept[:23] == changed[:23]).all() and (kept[23:] != changed[23:]).all()
    # As many epochs as asked for are there already: nothing is done.
    assert result(capsys, "--epochs", 1, "--resume", file)[4] is None


# Errors


@pytest.mark.parametrize(
    "arguments",
    [
        ["--epochs", "0"],
        ["--batch-size", "-1"],
        ["--learning-rate", "0"],
        ["--learning-rate", "nan"],
        ["--seed", "x"],
        ["--device", "tpu"],
        ["--colour"],
    ],
)
def test_wrong_arguments(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    status, out, errors = run(capsys, *arguments)
    assert status == 1 and out == "" and "Traceback" not in errors
    line = errors.split("\n")[-2].split("\r")[-1]
    assert line.startswith("train_digits: ")
    return line


def test_bad_checkpoints(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert str(missing) in refused(capsys, "--resume", missing)
    text = tmp_path / "text"
    text.write_text("no safetensors")
    assert "cannot resume from" in refused(capsys, "--resume", text)
    other = tmp_path / "other.safetensors"
    mx.save_safetensors(str(other), {"w": mx.ones((2,))})
    assert "it lacks 'seed'" in refused(capsys, "--resume", other)
    file = tmp_path / "file"
    result(capsys, "--epochs", 1, "--batch-size", 512, "--save", file)
    for option, text in (("--batch-size", "512, not 7"), ("--seed", "0, not 7")):
        line = refused(capsys, "--resume", file, option, 7)
        assert f"was made with {option} {text}" in line
    arrays, metadata = mx.load(str(file), format="safetensors", return_metadata=True)
    arrays["network.layers.0.weight"] = mx.ones((3, 3))
    broken = tmp_path / "broken.safetensors"
    mx.save_safetensors(str(broken), arrays, metadata)
    assert "layers.0.weight" in refused(capsys, "--resume", broken)


def test_places_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    nowhere = tmp_path / "no" / "file"
    common = ["--epochs", 1, "--batch-size", 512]
    for option in ("--save", "--plot"):
        line = refused(capsys, *common, option, nowhere)
        assert "cannot write" in line and str(nowhere) in line
    line = refused(capsys, "--batch-size", 2000)
    assert line == "train_digits: --batch-size 2000 is more than the 1438 images"
