"""Takes a patch without context (git diff -U0) of C++ sources and leaves out the hunks in which only
includes, comments and empty lines differ, and the files of which nothing remains. A folder that gets
another name changes the includes of half of the sources, and clang-tidy would read each of them.

    patch_of_code.py [--removals]    --removals: keeps hunks that only remove code, too
"""
import re
import sys

# A comment, or a literal that may hold the signs of one.
COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//.*')


def code_in(hunk, sign):
    """What the lines with this sign hold besides includes, comments and space."""
    lines = (line[1:].strip() for line in hunk if line.startswith(sign))
    plain = (COMMENT.sub(lambda found: "" if found[0].startswith("//") else found[0], line)
             for line in lines if not line.startswith("#include"))
    return "".join("".join(line.split()) for line in plain)


def says_something(hunk, with_removals):
    added, removed = code_in(hunk, "+"), code_in(hunk, "-")
    return added != removed and (added != "" or with_removals)


def code_of(lines, with_removals=False):
    """The lines of the patch that remain."""
    head, hunk = [], []

    def hunk_ends():
        nonlocal head, hunk
        kept = head + hunk if says_something(hunk, with_removals) else []
        if kept:
            head = []
        hunk = []
        return kept

    for line in lines:
        if line.startswith("diff --git "):
            yield from hunk_ends()
            head = [line]
        elif line.startswith("@@ "):
            yield from hunk_ends()
            hunk = [line]
        elif hunk:
            hunk.append(line)
        else:
            head.append(line)
    yield from hunk_ends()


if __name__ == "__main__":
    sys.stdout.writelines(code_of(sys.stdin, "--removals" in sys.argv[1:]))
