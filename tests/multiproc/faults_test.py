"""One case or a few of each family of tests/faults.sh, which plays all at night."""
import concurrent.futures
import pathlib
import sys
import unittest

from harness import ROOT, scratch_directory

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
import faults  # noqa: E402
from stage import World  # noqa: E402

SAMPLE = ("kill/coordinator/kill/recovery/2-workers",
          "evaluation/writer/dies-in-write/the-best",
          "damage/evals.jsonl/flip-middle/live",
          "damage/journal/older-copy/at-rest",
          "damage/newest/model.safetensors/flip-middle/at-rest",
          "damage/journal.db/deleted/live",
          "disk/journal.db-wal/sync-4-ENOSPC/first-start",
          "disk/all-files/short-writes/first-start",
          "power/all-files/content-and-names-lost/before-sync-12",
          "command/scale-1/coordinator-killed-in-10-ms/middle",
          "impostor/control/refuses/take-over",
          "signal/supervisor/TERM+INT/checkpoint",
          "stream/run/both-full/start",
          "resource/descriptors/24/start",
          "clock/all/forth-60-years/take-over",
          "end/weights-of-writer/flip/before-the-last-checkpoint/1-workers",
          "foreign/newest/model.safetensors/given-away/at-rest",
          "absence/coordinator/until-records-are-in-files/table",
          "changed/folder/rewritten/at-rest",
          "edited/parts/loss/all-killed",
          "hang/script/data-process/deadlocks-every-time/1-workers",
          "pair/agent-killed+coordinator-stops/script")


class Faults(unittest.TestCase):
    def test_a_sample_of_each_family(self):
        world = World(scratch_directory(self.addClassCleanup))
        world.make()
        cases = {case.name: case for case in faults.table()}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda name: faults.play_apart(cases[name], world, False),
                                    SAMPLE))
        for result in results:
            if result["outcome"] == "skipped":
                print(f"skipped {result['name']}: {result['wrong']}", file=sys.stderr)
                continue
            with self.subTest(result["name"]):
                self.assertEqual(result["outcome"], "passed",
                                 f"{result['wrong']}\nreplay: {ROOT}/tests/faults.sh --only "
                                 f"'{result['name']}'")

    def test_every_family_is_in_the_sample(self):
        self.assertEqual({name.split("/")[0] for name in SAMPLE},
                         {case.family for case in faults.table()})


if __name__ == "__main__":
    unittest.main()
