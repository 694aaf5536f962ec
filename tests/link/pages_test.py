"""Pages agree with the source: the source can say the messages that they quote, the targets of
links exist, and a file has what a page says to be in it."""
import ast
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "deploy/TROUBLESHOOTING.md"
OF_LOOPS = ROOT / "worker/python/FROM_DDP.md"
PACKAGE = ROOT / "worker/python/lockstep"
SOURCES = ("comm", "coordinator", "data", "deploy", "worker")
# Strings, and what only looks like one: characters and comments.
TOKEN = re.compile(r'R"(\w*)\(.*?\)\1"|"(?P<text>(?:[^"\\\n]|\\.)*)"|'
                   r"'(?:[^'\\\n]|\\.)+'|//[^\n]*|/\*.*?\*/|\s+|.", re.S)
CODE_SPAN = re.compile(r"(`+)(.+?)\1")


def strings_of(source):
    """The string literals of a C++ file. Joins neighbours, also with a + between them."""
    found, open_one = [], None
    for token in TOKEN.finditer(source):
        text = token.group(0)
        if token["text"] is not None:
            open_one = (open_one or "") + token["text"]
        elif open_one is not None and not re.match(r"\s|\+|//|/\*", text):
            found.append(open_one.replace('\\"', '"').replace("\\n", "\n"))
            open_one = None
    return found


def rows_of_tables(page, is_head):
    """The rows of the tables whose head line `is_head` accepts."""
    is_inside = False
    for line in page.read_text().splitlines():
        if not line.startswith("|"):
            is_inside = False
        elif is_head(line):
            is_inside = True
        elif is_inside and not line.startswith("|---"):
            yield line


def quoted_messages():
    """First column of the tables whose head is `message`: (fixed parts, the message)."""
    for line in rows_of_tables(PAGE, lambda head: head.startswith("| message |")):
        message = CODE_SPAN.search(line.split(" | ")[0]).group(2).strip()
        yield [part for part in message.split("…") if re.search(r"\w", part)], message


def quoted_of_loops():
    """The code spans of the columns with the head `Lockstep says`."""
    for line in rows_of_tables(OF_LOOPS, lambda head: head.endswith("| Lockstep says |")):
        yield from (span[1].strip() for span in CODE_SPAN.findall(line.split(" | ", 1)[1]))


def triples(text):
    """Each three words that follow each other, with the place of the first."""
    words = text.split()
    return [(place, tuple(words[place:place + 3])) for place in range(len(words) - 2)]


def triples_of_package():
    """The triples of the package's strings, and of an f-string's text between its values."""
    trees = (ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py"))
    return {three for tree in trees for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            for _, three in triples(node.value)}


def share_said(message, said):
    """The share of a message's words that are in three successive words of the source."""
    places = {place + i for place, three in triples(message) if three in said for i in range(3)}
    return len(places) / len(message.split())


def heading_ids(page):
    """The ids that GitHub makes of headings."""
    heads = re.findall(r"(?m)^#+ (.*)$", page)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def links():
    for page in sorted(ROOT.rglob("*.md")):
        if {"build", "runs"} & set(page.relative_to(ROOT).parts):
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if not re.match(r"[a-z]+:", target):
                yield page, target


def places():
    """The places of which a page says "`a` and `b` in [file](file)": page, file, each name."""
    names = r"((?:`[A-Za-z_][\w:.]*`(?:, | and | or )?)+)"
    for page, target in set(links()):
        where = (page.parent / target).resolve()
        if where.is_file() and where.suffix != ".md":
            for found in re.finditer(names + r" in \[[^\]]*\]\(" + re.escape(target) + r"\)", page.read_text()):
                for name in CODE_SPAN.findall(found[1]):
                    yield page, where, name[1]


class Pages(unittest.TestCase):
    def test_what_is_said_to_be_in_a_file_is_in_it(self):
        said = [*places()]
        self.assertGreater(len(said), 50)
        for page, where, name in said:
            with self.subTest(page=str(page.relative_to(ROOT)), file=where.name, name=name):
                self.assertRegex(where.read_text(), rf"\b{re.split('::|[.]', name)[-1]}\b")

    def test_every_message_can_be_said(self):
        files = [path for top in SOURCES for path in sorted((ROOT / top).rglob("*.cc"))]
        strings = ["\0".join(strings_of(path.read_text())) for path in files]
        for parts, message in quoted_messages():
            with self.subTest(message=message):
                self.assertTrue(any(len(part.split()) >= 2 for part in parts), "says too little")
                # One file has all parts of one message.
                self.assertTrue(any(all(part in text for part in parts) for text in strings))

    def test_there_are_messages(self):
        self.assertGreater(len(list(quoted_messages())), 50)

    def test_every_message_of_a_loop_can_be_said(self):
        said, quoted = triples_of_package(), [*quoted_of_loops()]
        self.assertGreater(len(quoted), 20)
        for message in quoted:
            with self.subTest(message=message):
                self.assertGreaterEqual(share_said(message, said), 0.7)

    def test_every_link_leads_somewhere(self):
        for page, target in links():
            with self.subTest(page=str(page.relative_to(ROOT)), target=target):
                file, _, anchor = target.partition("#")
                where = (page.parent / file).resolve() if file else page
                self.assertTrue(where.exists())
                if anchor and where.suffix == ".md":
                    self.assertIn(anchor, heading_ids(where.read_text()))


if __name__ == "__main__":
    unittest.main()
