"""Judges a test program that has ended. A test that was skipped on a machine with a GPU has shown
nothing, so it has failed, unless its reason begins with "not applicable: "."""
import dataclasses
import re

OK, FAILED, SKIPPED, NOT_APPLICABLE = "ok", "FAILED", "skipped", "not applicable"
NOT_APPLICABLE_BECAUSE = "not applicable: "

GTEST_RUN = re.compile(r"^\[ RUN      \] (\S+)")
GTEST_END = re.compile(r"^\[( {7}OK|  FAILED |  SKIPPED) \] ([^\s,]+).*\(\d+ ms\)$")
UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ", re.M)
UNITTEST_SKIPPED = re.compile(r"""\bskipped (['"])(.*)\1$""", re.M)
NOTE = re.compile(r"^note: (.+)$", re.M)  # a figure that a test tells
UNITTEST_FAILED = re.compile(r"^(?:FAIL|ERROR): (\S+)", re.M)


@dataclasses.dataclass
class Tests:
    """The tests of one program, as far as it came."""
    passed: int = 0
    failed: list = dataclasses.field(default_factory=list)  # names
    skipped: list = dataclasses.field(default_factory=list)  # reasons
    in_hand: str = ""  # the test that had begun and not ended


def read_gtest(text):
    tests, said = Tests(), []
    for line in text.splitlines():
        if begun := GTEST_RUN.match(line):
            tests.in_hand, said = begun[1], []
        elif ended := GTEST_END.match(line):
            tests.in_hand = ""
            if "OK" in ended[1]:
                tests.passed += 1
            elif "FAILED" in ended[1]:
                tests.failed.append(ended[2])
            else:
                tests.skipped.append(" ".join(said) or "no reason given")
        elif line and not line.endswith(": Skipped"):
            said.append(line)
    return tests


def read_unittest(text):
    ran = UNITTEST_RAN.search(text)
    tests = Tests(failed=UNITTEST_FAILED.findall(text),
                  skipped=[reason for _, reason in UNITTEST_SKIPPED.findall(text)])
    if ran:
        tests.passed = max(0, int(ran[1]) - len(tests.failed) - len(tests.skipped))
    return tests


READERS = {"gtest": read_gtest, "unittest": read_unittest}


def judge(kind, ended, has_gpu):
    """(result, detail) of a program of this kind; `ended`: running.Ended."""
    tests = READERS[kind](ended.text)
    where = f" in {tests.in_hand}" if tests.in_hand else ""
    if ended.code != 0:
        names = f": {', '.join(tests.failed[:5])}" if tests.failed else ""
        return FAILED, ended.why() + where + names
    if tests.failed or tests.in_hand:
        return FAILED, f"exit 0, but failed: {', '.join(tests.failed) or tests.in_hand}"
    beyond = [reason for reason in tests.skipped if reason.startswith(NOT_APPLICABLE_BECAUSE)]
    skipped = [reason for reason in tests.skipped if not reason.startswith(NOT_APPLICABLE_BECAUSE)]
    if not tests.passed and not tests.skipped:
        return FAILED, "exit 0, but no test ran"
    if skipped:
        return FAILED if has_gpu else SKIPPED, f"{len(skipped)} skipped: {skipped[0]}"
    if not tests.passed:
        return NOT_APPLICABLE, beyond[0][len(NOT_APPLICABLE_BECAUSE):]
    said = [f"{tests.passed} passed", *NOTE.findall(ended.text)]
    return OK, "; ".join(said + ([f"{len(beyond)} {beyond[0]}"] if beyond else []))
