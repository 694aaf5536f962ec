#!/usr/bin/env python3
"""The key tables of the pages. Between `<!-- keys: SECTION -->` and `<!-- /keys -->`, or
`<!-- values: KEY -->` and `<!-- /values -->`, a page has the output of
`lockstep run --help-job --markdown SECTION` or KEY.

    LOCKSTEP_BIN=build/release/bin tests/link/key_tables.py    writes them into all pages
"""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = re.compile(r"(<!-- (?P<what>keys|values): (?P<name>[\w.]+) -->\n)(.*?)(<!-- /(?P=what) -->)", re.S)


def pages():
    for page in sorted(ROOT.rglob("*.md")):
        if not {"build", "runs"} & set(page.relative_to(ROOT).parts):
            yield page


def printed(section):
    lockstep = pathlib.Path(os.environ.get("LOCKSTEP_BIN", ROOT / "build/release/bin")) / "lockstep"
    return subprocess.run([lockstep, "run", "--help-job", "--markdown", section], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def tables():
    """(page, section or key, the table as it stands there) of every table."""
    for page in pages():
        for match in TABLE.finditer(page.read_text()):
            yield page, match["name"], match[4]


if __name__ == "__main__":
    for path in {page for page, _, _ in tables()}:
        text = TABLE.sub(lambda m: m[1] + printed(m["name"]) + m[5], path.read_text())
        path.write_text(text)
