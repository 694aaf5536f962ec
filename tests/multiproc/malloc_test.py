"""cluster.malloc: the agent preloads the allocator into its workers and nowhere else; where it is
not installed the run is refused with the package's name; weights stay the same."""
import os
import pathlib
import shutil
import unittest

from harness import BIN, LockstepTest, lockstep, synthetic_dataset

LIBRARIES = {"jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
             "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4")}
STAND_IN = BIN.parent / "tests" / "liblockstep_slow_slots.so"  # does nothing unless it is told to
PLACES = [pathlib.Path(root + lib) for root in ("/usr", "/usr/local", "")
          for lib in ("/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/lib")]


def installed(name):
    files = [LIBRARIES[name][0], LIBRARIES[name][0].replace("_minimal", "")]
    return any((place / file).exists() for place in PLACES for file in files)


class Malloc(LockstepTest):
    def job(self):
        data = synthetic_dataset(self.scratch / "data")
        file = self.scratch / "job.yaml"
        file.write_text(f"model: {{name: cnn}}\ndata: {{train: {{path: {data}}}}}\n"
                        "train: {global_batch: 32, slots: 2, max_steps: 40}\n"
                        "optimizer: {name: sgd, lr: 0.05}\n")
        return file

    def with_stand_in(self, name):
        place = self.scratch / "lib"
        place.mkdir(exist_ok=True)
        library = place / LIBRARIES[name][0]
        shutil.copy(STAND_IN, library)
        return library, {**os.environ, "LD_LIBRARY_PATH": str(place)}

    def maps(self, pid):
        return pathlib.Path(f"/proc/{pid}/maps").read_text()

    def test_workers_have_it_and_others_do_not(self):
        for name in LIBRARIES:
            library, env = self.with_stand_in(name)
            run = self.start(self.job(), "--workers", 2, f"cluster.malloc={name}",
                             "train.max_steps=1000000", name=name, env=env)
            run.wait_for_workers(2)
            for pid in run.workers():
                self.assertIn(str(library), self.maps(pid))
            self.assertNotIn(str(library), self.maps(run.agent()))
            self.assertNotIn(str(library), self.maps(run.coordinator()["pid"]))
            run.process.terminate()
            self.assertEqual(run.wait(), 75, run.text())

    def test_one_that_is_missing_is_refused_with_its_package(self):
        missing = [name for name in LIBRARIES if not installed(name)]
        if not missing:
            self.skipTest("all allocators are installed here; allocator_test.cc has the case")
        for name in missing:
            library, package = LIBRARIES[name]
            run = lockstep("run", self.job(), "--workers", "1", "--run-dir", self.scratch / name,
                           f"cluster.malloc={name}")
            self.assert_fails(run, 78, names=[f"cluster.malloc is {name}", library], advises=package)
            self.assertFalse((self.scratch / name).exists(), "nothing has begun")

    def test_weights_are_those_of_the_systems_allocator(self):
        hashes = {}
        for name in ["system", *filter(installed, LIBRARIES)]:
            run = self.finish(self.job(), "--workers", 2, f"cluster.malloc={name}", name=name)
            hashes[name] = run.summary()["weights_sha256"]
        if len(hashes) == 1:
            self.skipTest("no other allocator is installed here")
        self.assertEqual(len(set(hashes.values())), 1, hashes)


if __name__ == "__main__":
    unittest.main()
