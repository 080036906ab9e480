"""Reads tables with pyarrow and DuckDB and says where they differ from what hopmap says of them.

Standard input: {file: {"column": a column of numbers or null, "rows": their number, "sum": of the column}}.
"""

import json
import math
import sys

import duckdb
import pyarrow.compute
import pyarrow.parquet


def by_pyarrow(file, column):
    table = pyarrow.parquet.read_table(file)
    values = table[column].cast("double") if column else None
    return table.num_rows, pyarrow.compute.sum(values).as_py() if column else None


def by_duckdb(file, column):
    wanted = f'sum(cast("{column}" as double))' if column else "null"
    return duckdb.execute(f"select count(*), {wanted} from read_parquet(?)", [file]).fetchone()


def same(expected, rows, total):
    close = math.isclose(expected["sum"] or 0, total or 0, rel_tol=1e-9, abs_tol=1e-12)
    return rows == expected["rows"] and close


tables = json.load(sys.stdin)
differ = 0
for file, expected in tables.items():
    for name, read in [("pyarrow", by_pyarrow), ("DuckDB", by_duckdb)]:
        rows, total = read(file, expected["column"])
        if not same(expected, rows, total):
            differ += 1
            print(f"{name} {file}: {rows} rows, sum {total}, expected {expected}")
if not differ:
    print(f"{len(tables)} tables are the same")
