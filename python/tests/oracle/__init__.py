"""The oracle: one table with a row an operation. A row says how the operation is
called, what NumPy gives for it in float64 (or exactly), which types it takes, where
its arguments come from, how near the result must be, what can be differentiated
and batched. python/tests/test_oracle*.py drive it.

A new operation gets a row in the file of its family. `row.py` explains the form.
"""

from . import (
    binary,
    composed,
    creation,
    draws,
    elementwise,
    fast,
    indexing,
    products,
    reduce,
    scan,
    shape,
    sort,
)
from .row import Case, Operand, Row, Ulp, case

FAMILIES = (
    elementwise,
    binary,
    creation,
    shape,
    indexing,
    reduce,
    scan,
    sort,
    products,
    composed,
    fast,
    draws,
)
TABLE: dict[str, Row] = {row.name: row for f in FAMILIES for row in f.ROWS}
if len(TABLE) != sum(len(f.ROWS) for f in FAMILIES):
    raise ValueError("an operation has two rows")

__all__ = ["TABLE", "Case", "Operand", "Row", "Ulp", "case"]
