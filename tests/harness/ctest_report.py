"""Sums up a run of ctest for tests/run.sh: counts, how to replay, and the last words.

    ctest_report.py JUNIT_FILE BUILD_DIR [FLAKY_DIR]

With FLAKY_DIR, each failed test runs once more, alone. If it passes then, it is flaky: chance or a
busy machine decided. FLAKY_DIR/NAME.log keeps the output of both runs. If more than MOST_AGAIN
tests failed, it was no chance, and none runs again.

A program of GoogleTest stands in ctest as a few parts of many tests each (test_data.1 ...), and here
each test counts by itself. Every other test of ctest counts as one. Output, one item a line:

    count PASSED FAILED SKIPPED FLAKY
    flaky NAME
    skip REASON
    replay COMMAND
    word LINE            of what each failed test said, its last lines
"""

import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field

MOST_LINES = 25   # told of one failed test
MOST_TESTS = 20   # told of one part
MOST_AGAIN = 10   # failed tests that run once more


SKIPPED = re.compile(r" skipped (.*)$")  # in the words of Python's unittest


@dataclass
class Report:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    flaky: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    replays: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def tell(self, name: str, lines: list[str]) -> None:
        self.words.append(f"-- {name}")
        self.words += [f"   {line}" for line in lines[-MOST_LINES:]]


def sum_of(word: str, lines: list[str]) -> int:
    """The number in "[  PASSED  ] 12 tests.", which a part says once, at its end."""
    pattern = re.compile(rf"\[  {word} *\] (\d+) tests?\b")
    return sum(int(match[1]) for match in map(pattern.match, lines) if match)


def failed_tests(lines: list[str]) -> dict[str, list[str]]:
    """The output of each failed test by name. The last test may not have ended."""
    found: dict[str, list[str]] = {}
    name, said = "", []
    for line in lines:
        if begun := re.match(r"\[ RUN      \] (\S+)", line):
            name, said = begun[1], []
        elif re.match(r"\[(       OK |  SKIPPED )\] ", line):
            name, said = "", []
        elif re.match(r"\[  FAILED  \] ", line) and name:
            found[name] = said
            name, said = "", []
        elif name:
            said.append(line)
    if name:
        found[name] = said + ["(the program ended in this test)"]
    return found


def add_part(report: Report, name: str, lines: list[str], lost: bool, build: str) -> None:
    report.passed += sum_of("PASSED", lines)
    report.skipped += sum_of("SKIPPED", lines)
    if not lost:
        return
    tests = failed_tests(lines)
    report.failed += max(1, len(tests))
    program = f"{build}/tests/{name.rsplit('.', 1)[0]}"
    for test, said in list(tests.items())[:MOST_TESTS]:
        report.tell(test, said)
        report.replays.append(f"{program} --gtest_filter='{test}'")
    if not tests:  # it did not begin, a sanitizer spoke after the last test, or time ran out between
        report.tell(name, lines)
        report.replays.append(again(name, build))


def again(name: str, build: str) -> str:
    return f"ctest --test-dir {build} -R '^{re.escape(name)}$' --output-on-failure"


def passes_alone(name: str, build: str, said: str, directory: pathlib.Path) -> bool:
    """Runs a failed test again. Keeps the output of both runs if it passes now."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / f"{name}.log"
    with open(log, "w") as out:
        out.write(f"{said}\n---- once more, alone: {again(name, build)}\n")
        out.flush()
        ended = subprocess.run(["ctest", "--test-dir", build, "-R", f"^{re.escape(name)}$",
                                "--no-tests=error", "--verbose"], stdin=subprocess.DEVNULL,
                               stdout=out, stderr=subprocess.STDOUT)
    if ended.returncode != 0:
        log.unlink()  # it failed twice, and the report says how
    return ended.returncode == 0


def find_flaky(cases: list, build: str, directory: pathlib.Path) -> list[str]:
    lost = [case for case in cases if case.get("status") == "fail"]
    if len(lost) > MOST_AGAIN:
        return []
    return [case.get("name", "") for case in lost
            if passes_alone(case.get("name", ""), build, case.findtext("system-out") or "",
                            directory)]


def read(junit: str, build: str, flaky_directory: str = "") -> Report:
    report = Report()
    cases = list(xml.parse(junit).getroot().iter("testcase"))
    if flaky_directory:
        report.flaky = find_flaky(cases, build, pathlib.Path(flaky_directory))
    for case in cases:
        name = case.get("name", "")
        lost = case.get("status") == "fail"
        lines = (case.findtext("system-out") or "").splitlines()
        reason = case.find("skipped")
        if re.fullmatch(r"test_\w+\.\d+", name):
            # A part that could not begin is "notrun", as a skipped test is.
            add_part(report, name, lines, case.get("status") != "run", build)
        elif case.get("status") == "run" or name in report.flaky:
            report.passed += 1
        elif lost or (reason is not None and "Unable to find" in reason.get("message", "")):
            report.failed += 1
            report.tell(name, lines)
            report.replays.append(again(name, build))
        else:
            report.skipped += 1
            report.reasons += [match[1] for line in lines if (match := SKIPPED.search(line))]
    return report


if __name__ == "__main__":
    told = read(*sys.argv[1:])
    print("count", told.passed, told.failed, told.skipped, len(told.flaky))
    for text in told.flaky:
        print("flaky", text)
    for text in told.reasons:
        print("skip", text)
    for command in told.replays:
        print("replay", command)
    for text in told.words:
        print("word", text)
