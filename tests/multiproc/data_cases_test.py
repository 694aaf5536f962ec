"""Input files that people met: Lockstep sees in them what other readers see.

The files are no part of the repository. LOCKSTEP_CASES names their directory, which has one for each
case; without it, nothing is tested here. The unit tests of data/ make inputs of the same kinds.
"""
import http.server
import json
import os
import pathlib
import re
import shutil
import threading
import unittest

from harness import ROOT, LockstepTest, lockstep

CASES = pathlib.Path(os.environ.get("LOCKSTEP_CASES", ROOT.parent / "shared" / "cases" / "data"))


class NoHead(http.server.BaseHTTPRequestHandler):
    """A server that refuses HEAD, as servers of signed addresses do."""
    content = b""

    def do_HEAD(self):
        self.send_error(405)

    def do_GET(self):
        if self.path != "/a.txt":
            self.send_error(404)
            return
        content = self.content
        asked = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        self.send_response(206 if asked else 200)
        if asked:
            first, last = int(asked[1]), min(int(asked[2]), len(content) - 1)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
            content = content[first:last + 1]
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@unittest.skipUnless(CASES.is_dir(), f"there are no cases in {CASES}")
class DataCases(LockstepTest):
    def case(self, name):
        """Copies the case, since caches and plans of reading may lie beside data."""
        if not (CASES / name).is_dir():
            self.skipTest(f"no case {name}")
        return pathlib.Path(shutil.copytree(CASES / name, self.scratch / name, symlinks=True,
                                            copy_function=shutil.copyfile))

    def seen(self, path, *args):
        return json.loads(self.succeed("data", "inspect", path, "--json", *args))

    def only(self, path, *args):
        splits = self.seen(path, *args)["splits"]
        self.assertEqual(len(splits), 1, splits)
        return splits[0]

    def left_out(self, seen):
        return {kind["kind"]: kind["files"] for kind in seen["left_out"]["kinds"]}

    def labels(self, split):
        return {label: count for label, count in enumerate(split["class_counts"]) if count}

    def test_cmyk_without_the_marker_is_inverted(self):
        split = self.only(self.case("cmyk_without_adobe_marker") / "d")
        for channel, mean in zip(split["statistics"], (0.192, 0.745, 0.847)):
            self.assertAlmostEqual(channel["mean"], mean, places=3)

    def test_the_label_of_a_table_without_names(self):
        case = self.case("csv_label_column")
        wine = self.only(case / "wine")
        self.assertEqual(self.labels(wine), {1: 59, 2: 71, 3: 48})
        self.assertEqual((wine["label"], wine["shape"][0]), ("column 1", 13))
        self.assertIn("first column", wine["guessed"])
        self.assertEqual(self.only(case / "digits")["classes"], 10)
        named = self.only(case / "labels")
        self.assertEqual((named["label"], named["class_counts"]), ("labels", [3, 3, 3]))

    def test_an_empty_text_has_nothing_to_learn(self):
        data = self.case("empty_text_file") / "d"
        self.assertEqual(self.only(data, "--block", "16")["samples"], (600 - 1) // 16)
        packed = self.only(data, "--block", "16", "--documents", "pack")["documents"]
        self.assertEqual((packed["count"], packed["predictions"]), (1, 599))

    def test_endings_that_tools_and_windows_write(self):
        case = self.case("endings")
        for args in ([], ["--format", "tfrecord"]):
            self.assertEqual(self.only(case / "tf", *args)["class_counts"], [2, 2])
        self.assertEqual(self.only(case / "tf" / "flowers00-4.tfrec", "--format",
                                   "tfrecord")["samples"], 4)
        for args in ([], ["--format", "csv"]):
            self.assertEqual(self.only(case / "csv", *args)["samples"], 2)
        for args in ([], ["--format", "text"]):
            self.assertEqual(self.only(case / "txt", "--block", "16", *args)["samples"],
                             (600 - 1) // 16)

    def test_what_systems_leave_beside_data_is_no_data(self):
        case = self.case("hidden_files")
        self.assertEqual(self.only(case / "bin", "--block", "16")["samples"], (4000 - 1) // 16)
        self.assertEqual(self.only(case / "txt", "--block", "16")["samples"], (1300 - 1) // 16)
        self.assertEqual(self.only(case / "csv")["samples"], 2)
        self.assertIn("none is damaged", self.succeed("data", "verify", case / "txt", "--full"))
        fruit = self.only(self.case("macosx_is_a_class") / "d")
        self.assertEqual((fruit["class_names"], fruit["class_counts"]), (["apple", "pear"], [1, 1]))

    def test_zero_scan_parameters_are_the_same_picture(self):
        case = self.case("jpeg_sos_parameters")
        odd = self.only(case / "d")
        self.assertEqual((odd["samples"], odd["class_counts"]), (3, [1, 2]))
        phone = case / "d" / "b" / "phone.jpg"
        jpeg = bytearray(phone.read_bytes())
        at = jpeg.index(b"\xff\xda")
        at += 5 + 2 * jpeg[at + 4]
        self.assertEqual(jpeg[at:at + 3], b"\0\0\0")
        jpeg[at:at + 3] = b"\0\x3f\0"  # as its writer should have
        phone.write_bytes(jpeg)
        self.assertEqual(self.only(case / "d")["statistics"], odd["statistics"])

    def test_a_column_of_numbers_is_no_label_for_that(self):
        data = self.case("label_is_any_integer") / "tf"
        self.assert_fails(lockstep("data", "inspect", data), 65, names=data / "train.tfrecord",
                          advises=["data.label", "height"])

    def test_columns_as_their_makers_name_them(self):
        mosaic = self.only(self.case("mds_of_streaming_itself") / "d")
        self.assertEqual((mosaic["input"], mosaic["label"], mosaic["class_counts"]),
                         ("x", "y", [2, 2]))
        data = self.case("two_label_columns") / "d"
        self.assertEqual(self.only(data)["label"], "fine_label")
        self.assertEqual(self.only(data)["class_counts"], [1, 1, 1, 1])
        self.assertEqual(self.only(data, "--label", "coarse_label")["class_counts"], [2, 2])

    def test_a_server_that_refuses_head(self):
        NoHead.content = (self.case("server_without_head") / "d" / "a.txt").read_bytes()
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), NoHead) as server:
            threading.Thread(target=server.serve_forever).start()
            self.addCleanup(server.shutdown)
            url = f"http://127.0.0.1:{server.server_port}/a.txt"
            split = self.only(url, "--block", "16", "--cache-dir", self.scratch / "cache")
            self.assertEqual(split["samples"], (600 - 1) // 16)

    def test_what_is_not_taken_is_counted(self):
        case = self.case("silently_left_out")
        ends = self.seen(case / "ends")
        self.assertEqual(ends["splits"][0]["class_counts"], [4, 4], "JPEG, JFIF, BMP and WebP")
        self.assertEqual(self.left_out(ends), {"*.tif": 2})
        link = case / "links" / "pear" / "0.jpg"  # an archive may have lost it
        if not link.is_symlink():
            link.symlink_to("/mnt/not-mounted/0.jpg")
        links = self.seen(case / "links")
        self.assertEqual(links["splits"][0]["class_counts"], [2, 1])
        self.assertEqual(sum(self.left_out(links).values()), 1, links["left_out"])
        self.assertIn("books/", str(self.seen(case / "text", "--block", "16")["left_out"]))
        if (case / "tar").is_dir():
            self.assertEqual(self.only(case / "tar")["samples"], 3)

    def test_splits_by_their_usual_names(self):
        case = self.case("split_names")
        for place in ("a", "b"):
            splits = self.seen(case / place)["splits"]
            self.assertEqual([(s["split"], s["class_names"], s["class_counts"]) for s in splits],
                             [("train", ["apple", "pear"], [3, 3]),
                              ("eval", ["apple", "pear"], [2, 2])])
        doubt = self.seen(case / "d")["warnings"]
        self.assertEqual(len(doubt), 1, doubt)
        self.assertIn(str(case / "d" / "train"), doubt[0])

    def test_text_beside_data_describes_them(self):
        case = self.case("txt_beside_data")
        pictures = self.seen(case / "img")
        self.assertEqual(pictures["splits"][0]["class_counts"], [2, 2])
        self.assertEqual(self.left_out(pictures), {"*.txt": 1})
        rows = self.seen(case / "csv")
        self.assertEqual((rows["splits"][0]["samples"], rows["splits"][0]["label"]), (2, "label"))
        for place, samples in (("img", 4), ("csv", 2), ("pq", 2)):
            packed = self.scratch / f"packed-{place}"
            self.succeed("data", "pack", case / place, packed)
            self.assertEqual(self.only(packed)["samples"], samples, place)
        job = self.job(case / "img", train={"global_batch": 2, "slots": 1, "epochs": 1})
        run = self.finish(job, "--workers", 1, name="fruit")
        self.assertEqual(run.summary()["class_names"], ["a", "b"])


if __name__ == "__main__":
    unittest.main()
