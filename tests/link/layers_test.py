"""The layers of the source: no circle of includes between folders or of more than two modules (a
header and its source are one), no folder too full to find a file in, no two headers of one name,
and no two types of one name in headers. The borders: which files may include LibTorch, and which
folders may include each other."""
import collections
import graphlib
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = (".h", ".cc", ".cu", ".cuh")
MOST_FILES = 40  # of one folder
# From the lowest to the highest. A folder includes nothing from a folder above it.
HEIGHT = ("comm", "metrics", "data", "coordinator", "worker", "deploy")
PRODUCT = ("comm", "coordinator", "data", "deploy", "metrics", "worker")


def sources(*tops):
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others",
                             "--exclude-standard", *tops], capture_output=True, text=True, check=True)
    return [pathlib.PurePath(line) for line in listed.stdout.splitlines()
            if line.endswith(SUFFIXES) and (ROOT / line).exists()]


def headers(*tops):
    return [file for file in sources(*tops) if file.suffix in (".h", ".cuh")]


def types(text):
    """The types that a header defines outside of any class. clang-format leaves them at the margin,
    and indents their content. An alias counts, a forward declaration does not."""
    key = r"(?:class|struct|union|enum(?: class| struct)?)"
    defined = key + r" (?:\[\[.*\]\] )?(\w+)(?: final)?(?: : [^;{]*)? \{"
    return [a or b for a, b in re.findall(rf"(?m)^(?:{defined}|using (\w+) =)", text)]


def includes(files):
    """By file, the product's files that it includes."""
    have = set(files)
    for file in files:
        text = (ROOT / file).read_text()
        found = {pathlib.PurePath(name) for name in re.findall(r'(?m)^\s*#include "([^"]+)"', text)}
        yield file, found & have


LIBTORCH = re.compile(r'(?m)^\s*#include\s*[<"](?:torch|ATen|c10|caffe2)/')


def reach_libtorch(direct, included):
    """All files that include one of `direct`, directly or through others."""
    reached = set(direct)
    while more := {file for file, found in included.items() if file not in reached and found & reached}:
        reached |= more
    return reached


def edges(files, name):
    """The graph of nodes, which `name` makes of files: by node, the nodes that it includes."""
    graph = collections.defaultdict(set)
    for file, found in includes(files):
        graph[name(file)] |= {name(other) for other in found} - {name(file)}
    return graph


def circle(graph):
    """The nodes of one circle, in their order, or none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [str(node) for node in error.args[1]]
    return []


def without_pairs(graph):
    """Joins two modules that include each other into one node."""
    partner = {a: min(a, b, key=str) for a in graph for b in graph[a] if a in graph.get(b, ())}
    joined = collections.defaultdict(set)
    for a, found in graph.items():
        here = partner.get(a, a)
        joined[here] |= {partner.get(b, b) for b in found} - {here}
    return joined


class Layers(unittest.TestCase):
    def test_top_level_folders_form_no_circle(self):
        self.assertEqual(circle(edges(sources(*PRODUCT), lambda file: file.parts[0])), [])

    def test_folders_form_no_circle(self):
        self.assertEqual(circle(edges(sources(*PRODUCT), lambda file: file.parent)), [])

    def test_modules_form_no_circle_beyond_a_pair(self):
        graph = edges(sources(*PRODUCT), lambda file: file.with_suffix(""))
        self.assertEqual(circle(without_pairs(graph)), [])

    def test_no_folder_is_crowded(self):
        count = collections.Counter(str(file.parent) for file in sources())
        self.assertEqual([(folder, n) for folder, n in count.items() if n > MOST_FILES], [])

    def test_no_two_headers_have_one_name(self):
        count = collections.Counter(file.name for file in headers(*PRODUCT))
        self.assertEqual([name for name, n in count.items() if n > 1], [])

    def test_no_two_types_have_one_name(self):
        found = collections.defaultdict(list)
        for file in headers(*PRODUCT):
            for name in types((ROOT / file).read_text()):
                found[name].append(str(file))
        self.assertEqual({name: where for name, where in found.items() if len(where) > 1}, {})

    def test_types_outside_of_classes_are_found(self):
        self.assertEqual(types(
            "class Before;\nenum class Early : int;\nstruct A {\n  struct Inner {};\n};\n"
            "class B final : public A,\n                public Before {};\nusing other::F;\n"
            "enum class C : char { kOne };\ntemplate <typename T>\nclass [[nodiscard]] D {};\n"
            "using E = A;\nstruct A::Impl {};\ntemplate <>\nstruct D<int> {};\nstruct stat look(int);\n"
            "// struct G {\nunion H {\n"), ["A", "B", "C", "D", "E", "H"])

    def test_a_circle_is_found(self):
        self.assertEqual(circle({"a": {"b"}, "b": {"c"}, "c": set()}), [])
        self.assertEqual(sorted(set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}))), ["a", "b", "c"])
        pair = without_pairs({"a": {"b"}, "b": {"a", "c"}, "c": set()})
        self.assertEqual(circle(pair), [])
        self.assertNotEqual(circle(without_pairs({"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"a"}})),
                            [])


class Borders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.included = dict(includes(sources(*PRODUCT)))

    def arrows(self, of, to):
        return [f"{file}: {other}" for file, found in sorted(self.included.items()) for other in sorted(found)
                if file.is_relative_to(of) and other.is_relative_to(to)]

    def test_only_worker_torch_reaches_libtorch(self):
        direct = [file for file in self.included if LIBTORCH.search((ROOT / file).read_text())]
        self.assertTrue(direct)
        self.assertEqual([str(file) for file in sorted(reach_libtorch(direct, self.included))
                          if not file.is_relative_to("worker/torch")], [])

    def test_nothing_else_includes_worker_torch(self):
        self.assertEqual([arrow for top in PRODUCT for arrow in self.arrows(top, "worker/torch")
                          if not arrow.startswith("worker/torch/")], [])

    def test_no_top_level_folder_includes_one_above_it(self):
        for at, low in enumerate(HEIGHT):
            for high in HEIGHT[at + 1:]:
                self.assertEqual(self.arrows(low, high), [], f"{low} is below {high}")

    def test_of_the_coordinator_others_include_what_they_must(self):
        self.assertEqual(self.arrows("coordinator", "data"), [])
        # replay reads the journal
        self.assertLessEqual(len(found := self.arrows("worker", "coordinator")), 7, found)
        self.assertLessEqual(len(found := self.arrows("deploy", "coordinator")), 12, found)

    def test_a_room_of_comm_includes_what_its_row_names(self):
        comm = pathlib.PurePath("comm")
        rows = re.findall(r"(?m)^\| \[[^]]*\]\((\S+)\) \|.*\| ([^|]+) \|$", (ROOT / "comm/README.md").read_text())
        uses = {comm / room: {comm / other for other in named.split(", ")} for room, named in rows}
        self.assertEqual({file.parent for file in self.included if file.is_relative_to(comm)} - set(uses), set())
        while grown := {room: more for room, named in uses.items()
                        if (more := set().union(*(uses.get(other, set()) for other in named)) - named)}:
            for room, more in grown.items():
                uses[room] |= more
        self.assertEqual([f"{file}: {other}" for file, found in sorted(self.included.items()) for other in sorted(found)
                          if file.is_relative_to(comm) and other.parent not in uses[file.parent] | {file.parent}], [])

    def test_who_reaches_libtorch_through_others_is_found(self):
        included = {"a": {"b"}, "b": {"c"}, "c": set(), "d": set()}
        self.assertEqual(reach_libtorch(["c"], included), {"a", "b", "c"})
        self.assertTrue(LIBTORCH.search("#pragma once\n#include <torch/torch.h>\n"))
        self.assertFalse(LIBTORCH.search('#include "worker/torch/model/model.h"\n'))


if __name__ == "__main__":
    unittest.main()
