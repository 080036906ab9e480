#!/usr/bin/env python3
"""Runs pipelines with two versions of hopmap and compares all results, cell by cell.

    ci/compare-versions.py OLD NEW [PIPELINE [NAME=VALUE ...]]... [--old-checkout DIR]

OLD and NEW are binaries. Each runs the pipelines of its own checkout (NEW: this one), so that OLD need not know new
names of parameters. Results that depend on a time limit are left out. Needs pyarrow.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as parquet

ROOT = Path(__file__).resolve().parent.parent
PIPELINES = ["adca", "demo", "figure-3 ranks=[16] shapes=[\"tree:2x2x4\"]", "graph2sch", "route", "schedule", "full"]


def run(binary, checkout, pipeline, store):
    name, *values = pipeline.split()
    text = (checkout / "pipelines" / f"{name}.toml").read_text()
    command = [binary, "run", checkout / "pipelines" / f"{name}.toml", "--store", store, "--report", store / "report.html", "-j", "2"]
    for value in values + [f"out={store / 'out'}"] * bool(re.search(r"^out\s*=", text, re.MULTILINE)):
        command += ["-p", value]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"{binary} run {pipeline}: exit {done.returncode}\n{done.stderr}")


def cells(store):
    """Artifact folders by cell and output, as the log of the store names them."""
    results, found = {}, {}
    for line in (store / "state.log").read_text().splitlines():
        entry = json.loads(line[line.index("{"):]) if "{" in line else {}
        if "result" in entry:
            results[entry["result"]["key"]] = entry["result"]
        if "current" in entry:
            cell, result = entry["current"]["cell"], results[entry["current"]["key"]]
            if not result.get("timed"):
                for output, description in result["outputs"].items():
                    found[cell, output] = store / "artifacts" / description["digest"]
    return found


def contents(folder):
    artifact = json.loads((folder / "artifact.json").read_text())
    for part in ("metrics", "files", "attributes"):
        yield part, artifact.get(part, {})
    for table in artifact.get("tables", {}):
        yield f"table {table}", parquet.read_table(folder / f"{table}.parquet").to_pydict()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("old"), parser.add_argument("new"), parser.add_argument("pipelines", nargs="*")
    parser.add_argument("--old-checkout", default=str(ROOT))
    given = parser.parse_args()
    differences, compared = [], 0
    for pipeline in given.pipelines or PIPELINES:
        with tempfile.TemporaryDirectory() as folder:
            old, new = Path(folder) / "old", Path(folder) / "new"
            run(given.old, Path(given.old_checkout).resolve(), pipeline, old)
            run(given.new, ROOT, pipeline, new)
            before, after = cells(old), cells(new)
            for key in sorted(before.keys() | after.keys()):
                if key not in before or key not in after:
                    differences.append(f"{pipeline}: {key} is only in the {'new' if key in after else 'old'} version")
                    continue
                compared += 1
                was, now = dict(contents(before[key])), dict(contents(after[key]))
                parts = [part for part in was.keys() | now.keys() if was.get(part) != now.get(part)]
                differences += [f"{pipeline}: {key}: {part}" for part in sorted(parts)]
    print("\n".join(differences))
    print(f"{compared} artifacts compared, {len(differences)} differences")
    sys.exit(1 if differences or not compared else 0)


main()
