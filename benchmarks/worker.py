"""One framework in a process and an environment of its own.

Reads requests, a JSON object a line, and answers each with one:
  {"do": "prepare", "case": NAME}     -> {"error": E} with E the largest error
                                         over the largest expected value, or
                                         null without a reference
  {"do": "time", "seconds": S}        -> {"seconds": of one call}
  {"do": "version"}                   -> {"version": V}
Whatever goes wrong is answered with {"failed": WHY}.

usage: worker.py FRAMEWORK
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from typing import Any

import numpy as np

from case import Case
from cases import CASES
from frameworks import load

BY_NAME = {case.name: case for case in CASES}


class Worker:
    def __init__(self, framework: Any) -> None:
        self.framework = framework
        self.case: Case | None = None
        self.inputs: list[list[Any]] = []
        self.turn = 0

    def call(self) -> Any:
        assert self.case is not None
        inputs = self.inputs[self.turn % len(self.inputs)]
        self.turn += 1
        return getattr(self.framework, self.case.function)(
            *inputs, **self.case.parameters
        )

    def prepare(self, name: str) -> dict[str, Any]:
        self.forget()
        case = BY_NAME[name]
        if not hasattr(self.framework, case.function):
            return {"failed": "not offered"}
        drawn = case.draw()
        self.case, self.turn = case, 0
        self.inputs = [
            [
                self.framework.array(values, one.dtype)
                for values, one in zip(arrays, case.inputs)
            ]
            for arrays in drawn
        ]
        error = None
        for arrays in drawn:  # every copy is warmed, the last one is checked
            result = self.call()
            if arrays is drawn[-1] and case.reference is not None:
                error = self.error_of(result, arrays)
        return {"error": error}

    def error_of(self, result: Any, arrays: list[Any]) -> float:
        assert self.case is not None and self.case.reference is not None
        head = slice(self.case.head)
        wide = [values[head].astype(np.float64) for values in arrays]
        part, expected = self.case.reference(*wide)
        got = self.framework.numpy(result)[part].astype(np.float64)
        return float(np.max(np.abs(got - expected)) / np.max(np.abs(expected)))

    def time(self, seconds: float) -> dict[str, Any]:
        """The mean time of as many calls as fit, at least one."""
        assert self.case is not None
        calls, start = 0, time.perf_counter()
        while calls == 0 or time.perf_counter() - start < seconds:
            self.call()
            calls += 1
        taken = time.perf_counter() - start
        return {"seconds": taken / calls / self.case.calls}

    def forget(self) -> None:
        self.case, self.inputs = None, []
        if hasattr(self.framework, "forget"):
            self.framework.forget()
        gc.collect()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "prepare":
            return self.prepare(request["case"])
        if request["do"] == "time":
            return self.time(request["seconds"])
        if request["do"] == "version":
            return {"version": self.framework.version}
        raise ValueError(f"unknown request {request['do']!r}")


def main() -> None:
    # Answers have a channel of their own: frameworks may print.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker: Worker | None = None
    for line in sys.stdin:
        try:
            worker = worker or Worker(load(sys.argv[1]))
            answer = worker.answer(json.loads(line))
        except Exception as problem:  # told to the asking side, which goes on
            answer = {"failed": f"{type(problem).__name__}: {problem}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
