"""The canonical JSON of what is no tensor."""

from __future__ import annotations

import enum
import json
import math
import random
import sys
import unittest
from collections import Counter, OrderedDict, defaultdict
from typing import Any

from lockstep._state._errors import StateError
from lockstep._state._objects import MAX_DEPTH, TensorRef, decode, encode, fill

VALUES: list[Any] = [
    None, True, False, 0, -1, 2 ** 63, -2 ** 1000, 0.1, -0.0, 1e-05, 1e16, 5e-324, math.inf,
    -math.inf, math.nan, "", "a\"\\\n\0é\ud800", [], [1, [2.0, "x"]], (), (1, (2,)), {},
    {"b": 1, "a": {"c": None}}, {"$r": 1}, {1: "x", 2: "y"}, {True: 1, "1": 2, 1.5: 3, None: 4},
    {(1, "a"): 2}, Counter([4, 2, 4]), OrderedDict([("b", 1), ("a", 2)]),
    defaultdict(int, {"a": 1}), defaultdict(None, {1: [2]}), defaultdict(dict, {}),
    {"deep": ({"x": Counter({"a": 2})}, [OrderedDict({3: (1.0,)})])},
]


def same(a: Any, b: Any) -> bool:
    """Equal, with types, order of OrderedDicts and the sign of zeros."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return repr(a) == repr(b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        factory = getattr(a, "default_factory", None) is getattr(b, "default_factory", None)
        order = not isinstance(a, OrderedDict) or list(a) == list(b)
        return factory and order and len(a) == len(b) and all(
            k in b and same(v, b[k]) for k, v in a.items()) and (
            sorted(map(repr, a)) == sorted(map(repr, b)))
    return a == b


class RoundTripTest(unittest.TestCase):
    def test_every_kind_of_value_comes_back_with_its_type(self) -> None:
        for value in VALUES:
            with self.subTest(value=repr(value)):
                text = encode(value, "here")
                self.assertTrue(same(value, decode(text, "here")), decode(text, "here"))
                json.loads(text)
                self.assertTrue(text.isascii() and b" " not in text.replace(b"\\u0020", b""))

    def test_order_of_a_dict_makes_no_difference(self) -> None:
        self.assertEqual(encode({"a": 1, "b": {3: 1, 1: 2}}, ""),
                         encode({"b": {1: 2, 3: 1}, "a": 1}, ""))
        self.assertEqual(encode(Counter([1, 2, 2]), ""), encode(Counter([2, 1, 2]), ""))
        self.assertNotEqual(encode(OrderedDict(a=1, b=2), ""), encode(OrderedDict(b=2, a=1), ""))

    def test_numbers_of_one_value_and_two_types_differ(self) -> None:
        self.assertEqual(3, len({encode(v, "") for v in (1, 1.0, True)}))

    def test_values_of_numpy(self) -> None:
        try:
            import numpy
        except ImportError:
            self.skipTest("without numpy")
        for value in (numpy.float32(0.1), numpy.int64(-3), numpy.bool_(True), numpy.float64("nan"),
                      numpy.arange(6, dtype="int16").reshape(2, 3).T, numpy.zeros((0, 3)),
                      numpy.array(2.5, dtype=">f4")):
            back = decode(encode(value, ""), "")
            self.assertIs(type(value), type(back))
            self.assertEqual((value.shape, value.dtype.newbyteorder("=")),
                             (back.shape, back.dtype))
            numpy.testing.assert_array_equal(value, back)
        for value in (numpy.array(["a"]), numpy.array([None]), numpy.zeros(10 ** 5),
                      numpy.complex64(1), numpy.datetime64("2020-01-01")):
            with self.assertRaises(StateError):
                encode({"a": value}, "")

    def test_values_of_torch(self) -> None:
        try:
            import torch
        except ImportError:
            self.skipTest("without torch")
        for value in (torch.bfloat16, torch.Size([2, 3]), torch.device("cpu")):
            back = decode(encode([value], ""), "")
            self.assertEqual([value], back)
            self.assertIs(type(value), type(back[0]))
        with self.assertRaisesRegex(StateError, r"^s\.a\[1\]: a tensor where none may be; "):
            encode({"a": [1, torch.zeros(1)]}, "s")

    def test_references_to_tensors(self) -> None:
        value = {"a": [TensorRef("x"), (TensorRef("y", (0, 2, 1)),)]}
        text = encode(value, "", lambda ref, path: ref)
        self.assertEqual(b'{"a":[{"$r":"x"},{"$t":[{"$r":["y",[0,2,1]]}]}]}', text)
        self.assertEqual(value, decode(text, ""))
        self.assertEqual({"a": ["x", ("y",)]}, fill(value, lambda ref: ref.name))


class RefusalTest(unittest.TestCase):
    def test_anything_else_is_refused_with_its_path(self) -> None:
        class Color(enum.IntEnum):
            RED = 1

        class Words(dict):
            pass

        circle: list[Any] = []
        circle.append(circle)
        for value, path, what in (
                ({"lr_lambdas": [math.sin]}, "s.lr_lambdas[0]", "a function"),
                ({"fn": lambda: 0}, "s.fn", "a function"), ({1: {2, 3}}, "s[1]", "a set"),
                ((Color.RED,), "s[0]", "an enum"), ([Words()], "s[0]", "a .*Words"),
                ({Color.RED: 1}, "s", "a dict with a .*Color as a key"),
                ([object()], "s[0]", "a object"), ([b"x"], "s[0]", "a bytes"),
                ([1j], "s[0]", "a complex"), (2 ** 1024, "s", "an integer of 1025 bits"),
                (defaultdict(lambda: 0), "s", "a defaultdict"), (circle, r"s.*", "too deeply")):
            with self.subTest(value=repr(value)[:60]):
                literal = path if path.endswith("*") else path.replace("[", r"\[")
                with self.assertRaisesRegex(StateError, f"^{literal}: .*{what}.*; "):
                    encode(value, "s")

    def test_text_that_is_not_canonical_is_refused(self) -> None:
        for text in (
                b"", b" 1", b"1 ", b"1 2", b"[1, 2]", b'{"b":1,"a":2}', b'{"a":1,"a":1}', b"1.00",
                b"01", b"1e5", b"1E5", b"NaN", b"Infinity", b"1e999", b"'a'", b'"\\u0061"',
                b'"\\/"', "\"é\"".encode(), b"\xff", b"[1,]", b"-0", b'{"$f":"NaN"}', b'{"$f":1}',
                b'{"$x":1}', b'{"$t":{}}', b'{"$t":1,"a":2}', b'{"$d":[[1,2],[1,3]]}',
                b'{"$d":[["a",2]]}', b'{"$d":[[2,1],[1,1]]}', b'{"$d":[[[],1]]}', b'{"$d":[1]}',
                b'{"$d":[[1]]}', b'{"$dd":["eval",[]]}', b'{"$dd":[[],[]]}', b'{"$c":3}',
                b'{"$r":1}', b'{"$r":["a",[-1]]}', b'{"$r":["a",[true]]}', b'{"$r":[]}',
                b'{"$r":["a",null]}', b'{"$n":[]}', b'{"$n":["O8","00"]}', b'{"$n":["f4","00"]}',
                b'{"$n":["f4","0000000000000000"]}', b'{"$a":["f4",[2],"00000000"]}',
                b'{"$a":["f4",[-1],"00000000"]}', b'{"$a":["f1",[1],"00"]}', b'{"$y":"nn"}',
                b'{"$y":[]}', b'{"$y":"float32","a":1}', b'{"$y":"zeros"}', b'{"$s":["a"]}',
                b'{"$v":"CUDA"}', b'{"$f":"inf","$f":"inf"}', b"9" * 400, b"-" + b"9" * 5000):
            with self.subTest(text=text[:40]):
                with self.assertRaisesRegex(StateError, "^source: .*; the state is damaged"):
                    decode(text, "source")

    def test_depth_and_length_have_limits(self) -> None:
        for text in (b"[" * 10 ** 6, b"[" * 300 + b"]" * 300, b'{"a":' * 10 ** 5):
            with self.assertRaisesRegex(StateError, "^source: values lie in each other too deep"):
                decode(text, "source")  # before json.loads() fills the stack
        for text in (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), b'"' + b'\\"' * 10 ** 5):
            with self.assertRaises(StateError):
                decode(text, "source")
        deep = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
        self.assertEqual(deep, encode(decode(deep, ""), ""))
        self.assertEqual("[" * 500, decode(json.dumps("[" * 500).encode(), ""))

    def test_damaged_texts_raise_or_are_other_canonical_texts(self) -> None:
        random.seed(7)
        texts = [encode(v, "") for v in VALUES]
        texts.append(encode({str(i): v for i, v in enumerate(VALUES)}, ""))
        texts += [b'{"$a":["f4",[1,1],"0000803f"]}', b'{"$n":["i8","0100000000000000"]}',
                  b'{"$r":["a.b",[1,0]]}', b'{"$s":[1,2]}', b'{"$y":"int8"}', b'{"$v":"cpu"}']
        pieces = [b'"$%s"' % t for t in (b"t", b"d", b"o", b"c", b"dd", b"f", b"n", b"a", b"r")]
        pieces += [b"[", b"]", b"{", b"}", b",", b":", b'"', b"1", b"1.5", b"null", b"\\", b"-"]
        refused = 0
        for _ in range(20000):
            text = bytearray(random.choice(texts))
            for _ in range(random.randint(1, 3)):
                at = random.randint(0, len(text))
                kind = random.random()
                if kind < 0.4:
                    text[at:at + random.randint(0, 3)] = random.choice(pieces)
                elif kind < 0.7 and at < len(text):
                    text[at] = random.randrange(256)
                else:
                    del text[at:at + random.randint(1, 4)]
            try:
                value = decode(bytes(text), "fuzz")
            except StateError:
                refused += 1
                continue
            self.assertEqual(bytes(text), encode(value, "", lambda ref, path: ref))
        self.assertGreater(refused, 10000)

    def test_nothing_is_imported_for_plain_values(self) -> None:
        before = set(sys.modules)
        for value in VALUES:
            decode(encode(value, ""), "")
        self.assertLessEqual(set(sys.modules) - before, {"encodings.idna"})


if __name__ == "__main__":
    unittest.main()
