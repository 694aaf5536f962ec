"""Takes a patch without context (git diff -U0) and leaves out the hunks that add nothing but
includes, comments and empty lines, and files of which nothing remains. A folder that gets another
name changes the includes of half of the sources, and clang-tidy would read each of them for that."""
import sys


def says_something(hunk):
    added = [line[1:].strip() for line in hunk if line.startswith("+")]
    return any(line and not line.startswith(("#include", "//")) for line in added)


def code_of(lines):
    """The lines of the patch that remain."""
    head, hunk = [], []

    def hunk_ends():
        nonlocal head, hunk
        kept = head + hunk if says_something(hunk) else []
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
    sys.stdout.writelines(code_of(sys.stdin))
