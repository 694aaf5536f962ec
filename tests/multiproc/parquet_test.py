"""Parquet with real processes: packed, then trained on; stopped in the middle; damaged."""
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import unittest

import harness
from harness import BIN, DEADLINE_S, LockstepTest, installed, lockstep
from image_files import CLASSES, EACH, EVALUATION, write_images
from pack_test import GPT2, contents, kill_once

WRITER = pathlib.Path(harness.__file__).with_name("parquet_files.py")


def arrow_python():
    """The Python whose library of Arrow lockstep-parquet is linked to."""
    root = installed("arrow-root")
    return pathlib.Path(root).parents[3] / "bin/python" if root else None


@unittest.skipUnless((BIN / "lockstep-parquet").exists() and arrow_python(),
                     "built without lockstep-parquet (deploy/install_deps.sh installs what it needs)")
class Parquet(LockstepTest):
    def write(self, *args):
        done = subprocess.run([arrow_python(), WRITER, *args], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def tokens(self):
        self.write("tokens", self.scratch)
        return self.scratch / "parquet"

    def command(self, source, to, *args):
        return [BIN / "lockstep", "data", "pack", source, to, *map(str, args)]

    def pack(self, source, to, *args, expect=0):
        done = lockstep("data", "pack", source, to, *args)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def assert_refused(self, source, to, code=65, **told):
        self.assert_fails(self.pack(source, to, expect=code), code, **told)

    def unpacked(self, to):
        return to.with_name(to.name + ".unpacked")

    def test_a_run_on_packed_tokens_is_the_run_on_arrow_files_of_the_same(self):
        packed = self.scratch / "packed"
        self.pack(self.tokens(), packed)
        self.assertEqual(len(list(packed.glob("*/*.arrow"))), 3)  # two of the training split
        self.assertFalse(self.unpacked(packed).exists())
        for documents in ("stream", "pad", "pack"):
            runs = [self.finish(self.job(path, model=GPT2, name=f"{path.name}-{documents}.yaml",
                                         data={"documents": documents, "train": {"path": str(path)},
                                               "eval": {"path": str(path)}},
                                         train={"global_batch": 40, "slots": 4, "epochs": 2}),
                                "--workers", workers, name=f"{path.name}-{documents}")
                    for path, workers in ((self.scratch / "arrow", 1), (packed, 2))]
            self.assert_same_result(runs[1], runs[0])

    @unittest.skipUnless(shutil.which("cjpeg"),
                         "cjpeg is not installed (Debian: libjpeg-turbo-progs)")
    def test_images_and_labels_come_out_as_they_went_in(self):
        for split, each, seed in (("train", EACH, 1), ("val", EVALUATION, 2)):
            write_images(self.scratch / "folder" / split, each, seed)
        source, packed = self.scratch / "parquet", self.scratch / "packed"
        self.write("images", self.scratch / "folder", source)
        self.pack(source, packed)
        self.write("same", source, packed)
        seen = json.loads(self.succeed("data", "verify", packed, "--json"))["splits"][0]
        self.assertEqual((seen["format"], seen["samples"]), ("arrow_images", len(CLASSES) * EACH))

    def test_what_a_kill_leaves_is_gone_on_with(self):
        source = self.tokens()
        self.pack(source, self.scratch / "whole")
        killed = self.scratch / "killed"
        process = subprocess.Popen(self.command(source, killed, "--threads", 1),
                                   stdout=subprocess.DEVNULL)
        kill_once(process, lambda: list(self.unpacked(killed).glob("*/*.arrow")))
        self.pack(source, killed)
        self.assertEqual(contents(killed), contents(self.scratch / "whole"))
        self.assertFalse(self.unpacked(killed).exists())

    def interrupted(self, source, to):
        """Packing that ended after everything was decoded. The second part has the first one's rows."""
        to.mkdir()
        (to / "foreign").touch()
        self.assert_refused(source, to, 64, names=to)
        (to / "foreign").unlink()
        decoded = sorted(self.unpacked(to).glob("*/*.arrow"))
        self.assertEqual(len(decoded), 3)
        first, second = (path for path in decoded if path.name.startswith("train"))
        shutil.copyfile(first, second)

    def test_what_is_decoded_is_used_again_while_its_file_is_as_it_was(self):
        source, whole = self.tokens(), self.scratch / "whole"
        self.pack(source, whole)
        again, anew = self.scratch / "again", self.scratch / "anew"
        self.interrupted(source, again)
        self.pack(source, again)
        self.assertNotEqual(contents(again), contents(whole))
        self.interrupted(source, anew)
        victim = source / "train-00001-of-00002.parquet"
        info, content = victim.stat(), victim.read_bytes()
        victim.write_bytes(bytes(info.st_size))
        os.utime(victim, ns=(info.st_atime_ns, info.st_mtime_ns + 1))
        self.assert_refused(source, anew, names=victim)
        victim.write_bytes(content)
        os.utime(victim, ns=(info.st_atime_ns, info.st_mtime_ns))
        self.pack(source, anew)
        self.assertEqual(contents(anew), contents(whole))

    def test_a_job_that_names_parquet_is_refused_with_the_command(self):
        source = self.tokens()
        for path in (source, source / "train-00000-of-00002.parquet"):
            run = self.start(self.job(path, model=GPT2), "--workers", 1, name=path.name)
            self.assert_fails(run, 64, advises=f"lockstep data pack {path} ")

    def test_what_is_damaged_is_named_and_harms_nothing_else(self):
        victim = self.tokens() / "train-00000-of-00002.parquet"
        whole = victim.read_bytes()
        to = self.scratch / "packed"
        for damaged in (b"PAR1", whole[:len(whole) // 2], whole[:-8] + b"\xff\xff\xff\x7fPAR1"):
            victim.write_bytes(damaged)
            self.assert_refused(victim.parent, to, names=victim, says="Parquet")
        self.assertFalse(to.exists())
        rng = random.Random(3)
        refused = 0
        for _ in range(30):
            damaged = bytearray(whole)
            for at in rng.sample(range(len(damaged)), 3):
                damaged[at] ^= 1 << rng.randrange(8)
            victim.write_bytes(damaged)
            shutil.rmtree(to, ignore_errors=True)
            done = subprocess.run(self.command(victim, to), capture_output=True, text=True,
                                  timeout=DEADLINE_S)
            self.assertIn(done.returncode, (0, 65), done.stderr)  # a value may be another one
            refused += done.returncode == 65
        self.assertGreater(refused, 10)

    def decoders(self, process):
        """Pids of the processes that `lockstep data pack` has started."""
        with contextlib.suppress(OSError):  # it ends meanwhile
            return [int(pid) for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir()
                    for pid in (task / "children").read_text().split()]
        return []

    def test_a_bomb_ends_at_the_limit_of_its_decoder_and_leaves_nothing(self):
        path, to = self.scratch / "bomb.parquet", self.scratch / "packed"
        self.write("bomb", path)
        self.assertLess(path.stat().st_size, 4096)
        process = subprocess.Popen(self.command(path, to), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)  # where it fails, its decoder goes with it
        half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        limited = set()
        while process.poll() is None:  # one decoder for the schema, one for the columns
            for pid in self.decoders(process):
                with contextlib.suppress(OSError):
                    grown = re.search(r"VmRSS:\s+(\d+) kB",
                                      pathlib.Path(f"/proc/{pid}/status").read_text())
                    if pid in limited or not grown or int(grown[1]) < 200_000:
                        continue  # it has only begun
                    limit, _ = resource.prlimit(pid, resource.RLIMIT_AS)
                    self.assertTrue(0 < limit <= min(16 << 30, half), limit)
                    # The same, sooner.
                    resource.prlimit(pid, resource.RLIMIT_AS, (1 << 30, 1 << 30))
                    limited.add(pid)
        said, _ = process.communicate()
        self.assertTrue(limited, "nobody decoded it")
        self.assert_fails((process.returncode, said), 65, names=path, says=["Parquet", "memory"])
        self.assertFalse(to.exists())
        self.assertFalse(self.unpacked(to).exists())

    def test_a_page_with_another_checksum_is_damaged(self):
        path = self.scratch / "one.parquet"
        self.write("checked", path)
        self.pack(path, self.scratch / "whole")
        damaged = bytearray(path.read_bytes())
        at = damaged.find((7).to_bytes(4, "little") * 20) + 8  # within the values of a page
        self.assertGreater(at, 8)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        self.assert_refused(path, self.scratch / "packed", names=path, says="Parquet")

    def test_rows_without_a_value_are_refused_and_leave_nothing(self):
        path = self.scratch / "nulls.parquet"
        self.write("nulls", path)
        to = self.scratch / "packed"
        self.assert_refused(path, to, names=path)
        self.assertFalse(self.unpacked(to).exists())

    def test_what_lies_beside_the_result_stays_and_what_lies_beside_parquet_is_left_out(self):
        source = self.tokens()
        to = self.scratch / "packed"
        theirs = self.unpacked(to) / "theirs"
        theirs.mkdir(parents=True)
        (theirs / "file").touch()
        self.pack(source, to)
        self.assertTrue((theirs / "file").exists())
        (source / "train.txt").write_text("words " * 100)
        self.assertRegex(self.pack(source, self.scratch / "text", "--block", 8).stdout,
                         r"\btokens in 2 files")
        self.assertFalse(self.unpacked(self.scratch / "text").exists())

    def test_files_of_the_same_name_size_and_time_in_another_directory_are_others(self):
        to = self.scratch / "packed"
        to.mkdir()
        (to / "foreign").touch()
        for name in ("one", "two"):
            (self.scratch / name).mkdir()
            self.write("checked", self.scratch / name / "a.parquet")
            os.utime(self.scratch / name / "a.parquet", ns=(10**18, 10**18))
            self.pack(self.scratch / name, to, expect=64)
        self.assertEqual(len(list(self.unpacked(to).glob("*/a.arrow"))), 2)

    def test_a_column_per_feature_becomes_rows_that_a_run_trains_on(self):
        source, packed = self.scratch / "tables", self.scratch / "packed"
        self.write("table", source)
        self.pack(source, packed)
        self.assertFalse(self.unpacked(packed).exists())
        self.write("rows", source, packed)
        seen = json.loads(self.succeed("data", "inspect", packed, "--json"))["splits"][0]
        self.assertEqual((seen["samples"], seen["classes"]), (500, 3))
        run = self.finish(self.job(packed, model={"name": "mlp"},
                                   data={"train": {"path": str(packed)},
                                         "eval": {"path": str(packed)}},
                                   train={"global_batch": 50, "slots": 2, "epochs": 2}),
                          "--workers", 2)
        self.assertTrue(run)
        # One file, and columns by their names.
        one = self.scratch / "one"
        self.pack(source / "val/c.parquet", one, "--input", "1,is_old", "--label", "label")
        seen = json.loads(self.succeed("data", "inspect", one, "--json"))["splits"][0]
        self.assertEqual((seen["samples"], seen["shape"]), (50, [2, 1, 1]))

    def test_what_is_no_number_in_a_table_is_named_with_its_file_and_column(self):
        self.write("odd_tables", self.scratch)
        to = self.scratch / "packed"
        missing, dates = self.scratch / "missing.parquet", self.scratch / "dates.parquet"
        self.assert_refused(missing, to, names=[missing, "line 4", '"age"'], advises="fill it in")
        self.assert_refused(dates, to, names=[dates, "born"], advises="--input")
        self.assertFalse(self.unpacked(to).exists())
        self.pack(dates, to, "--inputs", "size", "--targets", "price")

    def test_a_file_without_samples_is_told_what_it_has(self):
        packed = self.scratch / "packed"
        self.pack(self.tokens() / "train-00000-of-00002.parquet", packed)
        self.assertEqual(len(list(packed.rglob("*.arrow"))), 1)
        captions = self.scratch / "captions.parquet"
        self.write("captions", captions)
        self.assert_refused(captions, self.scratch / "none", names=[captions, "caption"])
        self.assertFalse(self.unpacked(self.scratch / "none").exists())


if __name__ == "__main__":
    unittest.main()
