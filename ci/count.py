#!/usr/bin/env python3
"""Counts the sources of a checkout: production files, lines of code, and lines of tests.

    ci/count.py [CHECKOUT]

A line of code is not blank, not a comment, and not in a test: neither in a module under `#[cfg(test)]` nor in a file
below `tests`, `benches`, `examples` or `fuzz`, nor in one whose name ends in `tests.rs`.
"""

import subprocess
import sys
from pathlib import Path

ASIDE = {"tests", "benches", "examples", "fuzz"}


def is_production(path):
    return not ASIDE & set(path.parts) and not path.name.endswith("tests.rs") and path.name != "build.rs"


def test_lines(lines):
    """Numbers of the lines in modules under `#[cfg(test)]`; in the format of rustfmt, a module ends at the next `}` with its indent."""
    found, number = set(), 0
    while number < len(lines):
        line = lines[number]
        if line.strip() == "#[cfg(test)]":
            indent = line[: len(line) - len(line.lstrip())]
            end = number + 1
            while end < len(lines) and lines[end].strip().startswith("#["):
                end += 1
            if end < len(lines) and lines[end].rstrip().endswith("{"):
                while end < len(lines) and lines[end].rstrip() != indent + "}":
                    end += 1
            found.update(range(number, end + 1))
            number = end
        number += 1
    return found


def count(root):
    names = subprocess.run(["git", "-C", root, "ls-files", "*.rs"], capture_output=True, text=True, check=True)
    code = comments = inner = files = aside = short = 0
    for path in map(Path, names.stdout.split()):
        lines = (Path(root) / path).read_text().splitlines()
        if not is_production(path):
            aside += len(lines)
            continue
        tests = test_lines(lines)
        rest = [line.strip() for number, line in enumerate(lines) if number not in tests and line.strip()]
        comment = sum(line.startswith("//") for line in rest)
        files, code, comments, inner = files + 1, code + len(rest) - comment, comments + comment, inner + len(tests)
        short += len(rest) - comment < 100
    rows = [
        ("production files", files), ("  of them below 100 lines of code", short), ("lines of code", code),
        ("lines of comments", comments), ("lines of tests in production files", inner), ("lines of other tests", aside),
    ]
    for what, number in rows:
        print(f"{what:<36}{number:>9,}")


count(sys.argv[1] if len(sys.argv) > 1 else ".")
