#!/usr/bin/env python3
"""Runs every bundled pipeline on samples, and writes docs/gallery.md with their output and pictures.

    ci/gallery.py path/to/hopmap            # NAME …: run only these
    HOPMAP_DATA=… ci/gallery.py path/to/hopmap table-1 figure-3
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
GALLERY = PROJECT / "docs/gallery"
REVISIONS = GALLERY / "revisions.csv"  # of the stages that each entry was made with; a test compares them

# Name, the commands as typed in the root of the project, and the picture of the report to include.
ENTRIES = [
    ("demo", ["hopmap run pipelines/demo.toml"], "Mapping compared with linear and random"),
    ("place", ["hopmap run pipelines/place.toml"], "After: this mapping"),
    ("predict", ["hopmap run pipelines/predict.toml"], "Time of every rank"),
    ("place-netloc", ["hopmap run pipelines/place-netloc.toml"], "Mapping compared with linear and random"),
    ("full", ["hopmap run pipelines/full.toml"], "Schedule"),
    ("batch", ["hopmap run pipelines/batch.toml"], "Communication matrices"),
    (
        "job",
        [
            "hopmap exec trace/otf2 -p path=sample-traces/rows-columns-16/eztrace_log.otf2 --out program --quiet",
            "hopmap exec topology/synthetic -p shape=tree:4x16x64 -p 'costs=[1, 10, 100]' -p host_prefix=node --out machine --quiet",
            "export SLURM_JOB_NODELIST='node[0003,0019,0500,0501]'     # Slurm sets this in a job",
            "hopmap run job --program program --machine machine --deadline 60s",
        ],
        "Traffic by level",
    ),
    ("rgo", ["hopmap run pipelines/rgo.toml"], "Traffic by level"),
    ("graphhunter", ["hopmap run pipelines/graphhunter.toml"], "Machine"),
    ("schedule", ["hopmap run pipelines/schedule.toml"], "Schedule"),
    ("graph2sch", ["hopmap run graph2sch --ini sample-schedules/cholesky-5/sch.ini"], "Schedule"),
    ("route", ["hopmap run pipelines/route.toml"], "Routes"),
    ("training", ["hopmap run pipelines/training.toml"], "Groups on the fabric"),
    ("training-trace", ["hopmap run pipelines/training-trace.toml"], "Timeline"),
    ("rapidio", ["hopmap run rapidio"], "Routes"),
    (
        "checkpoint",
        [
            "hopmap exec checkpoint/generate -p checkpoints=6 -p bytes=4194304 --out generated --quiet \\\n"
            "    -p 'changes=[{ kind = \"words\", pages = 0.3, words = 0.1 }, { kind = \"moves\", pages = 0.05, areas = 1 }]'",
            "hopmap run checkpoint --series generated/files",
        ],
        "Bytes stored by delta rules",
    ),
    ("adca", ["hopmap run adca", "hopmap show database-deltas --table rules"], "Bytes stored by delta rules"),
    (
        "topology-refresh",
        ["hopmap topology refresh --hosts localhost --start 'env HOST={host} hopmap agent' --publish published"],
        "Machine",
    ),
    ("figure-3", ["hopmap run figure-3 --partitioners '[\"own\", \"metis\", \"scotch\"]'"], None),
    ("figure-3-traces", ["hopmap run figure-3-traces --data $HOPMAP_DATA/traces"], "Communication matrices"),
    ("claims", ["hopmap run claims"], "F against seconds"),
    ("table-1", ["hopmap run table-1 --effort sample"], None),
    (
        "table-1-taillard",
        [
            "hopmap run pipelines/table-1-taillard.toml --data $HOPMAP_DATA/qap/taie --effort sample",
            "cat pipelines/out/table-1-taillard.md",
        ],
        None,
    ),
    ("one-second", ["hopmap run pipelines/one-second.toml --data $HOPMAP_DATA/qap/taie", "cat pipelines/out/one-second.md"], None),
    ("bench-mapping", ["cd pipelines", "hopmap run bench-mapping.toml -j1", "cat out/bench-mapping.md"], None),
]


def run(hopmap, entry):
    """Runs an entry in a folder like the root of the project; gives what it printed and its report."""
    name, commands, _ = entry
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for part in PROJECT.iterdir():
            if part.name == "pipelines" or part.name.startswith("sample-"):
                shutil.copytree(part, folder / part.name, ignore=shutil.ignore_patterns(".hopmap", "out"))
        (folder / "bin").mkdir()
        (folder / "bin/hopmap").symlink_to(Path(hopmap).resolve())
        path = f"{folder}/bin:{os.environ['PATH']}"
        script = "set -e\n" + "\n".join(commands)
        done = subprocess.run(
            ["sh", "-c", script], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            sys.exit(f"{name}: {done.stderr}")
        reports = sorted(folder.glob("**/reports/*.html")) + sorted(folder.glob("published/state/report.html"))
        html = reports[0].read_text() if reports else ""
        keep_revisions(name, folder)
        return done.stdout.replace(str(folder) + "/", ""), html


def keep_revisions(name, folder):
    """Notes the revisions of the stages whose results are below a folder."""
    manifests = [json.loads(path.read_text())["manifest"] for path in folder.glob("**/artifacts/*/provenance.json")]
    # A store that is kept has results of earlier revisions as well.
    newest = dict(sorted((manifest["kind"], manifest["revision"]) for manifest in manifests))
    rows = {(name, kind, str(revision)) for kind, revision in newest.items()}
    if REVISIONS.exists():
        with REVISIONS.open() as file:
            rows |= {tuple(row) for row in csv.reader(file) if row and row[0] not in (name, "page")}
    with REVISIONS.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("page", "stage", "revision"), *sorted(rows)])


def picture(html, title):
    """The first picture of a report whose title begins with a text."""
    for svg in re.findall(r"<svg.*?</svg>", html, re.S):
        found = re.search(r"<title[^>]*>(.*?)</title>", svg)
        if found and found.group(1).startswith(title):
            return svg
    titles = re.findall(r"<svg.*?<title[^>]*>(.*?)</title>", html, re.S)
    sys.exit(f"no picture `{title}`; pictures: {', '.join(titles)}")


def described(name):
    text = (PROJECT / f"pipelines/{name}.toml").read_text()
    return re.search(r'^description = "(.*)"$', text, re.M).group(1)


def main():
    hopmap, wanted = sys.argv[1], sys.argv[2:]
    unknown = set(wanted) - {entry[0] for entry in ENTRIES}
    if unknown:
        sys.exit(f"no entry {', '.join(sorted(unknown))}")
    for entry in ENTRIES:
        name, commands, title = entry
        if wanted and name not in wanted:
            continue
        print(name, file=sys.stderr)
        printed, html = run(hopmap, entry)
        lines = [f"$ {command}" for command in commands]
        (GALLERY / f"{name}.txt").write_text("\n".join(lines) + "\n" + printed.rstrip() + "\n")
        if title:
            (GALLERY / f"{name}.svg").write_text(picture(html, title) + "\n")
    parts = [
        "# Gallery\n\n"
        "Every pipeline that comes with hopmap, run in the root of a clone, with what it prints on standard output. `ci/gallery.py`\n"
        "writes this page. `hopmap init --from NAME` makes a project of your own from one of them, and [Pipelines](reference/pipelines.md)\n"
        "lists their parameters. `batch`, `table-1`, `figure-3`, `figure-3-traces` and `claims` end in SQL queries, so they need\n"
        "`hopmap-query` ([Install](howto/install.md#sql-queries)).\n"
    ]
    for name, _, title in ENTRIES:
        if not (GALLERY / f"{name}.txt").exists():
            print(f"{name} has not been run yet", file=sys.stderr)
            continue
        output = (GALLERY / f"{name}.txt").read_text()
        part = f"## {name}\n\n{described(name)}: [pipelines/{name}.toml](../pipelines/{name}.toml)\n\n```console\n{output}```\n"
        if title:
            part += f"\n![{title}](gallery/{name}.svg)\n"
        parts.append(part)
    (PROJECT / "docs/gallery.md").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
