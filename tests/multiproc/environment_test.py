"""A worker on a GPU changes its environment, which NCCL and cuBLAS read, before it has threads that
may read it at the same time. A stand-in for NVIDIA's driver shows a GPU, and an empty file is there
in place of the GPU module, so that workers come so far; then they say that they cannot load it."""
import os
import shutil
import unittest

from harness import BIN, LockstepTest

TESTS = BIN.parent / "tests"
WATCH = TESTS / "liblockstep_watched_environment.so"
DRIVER = TESTS / "unit/base/liblockstep_fake_driver.so"


class Environment(LockstepTest):
    def test_a_worker_changes_its_environment_while_it_has_one_thread(self):
        for built in (WATCH, DRIVER):
            self.assertTrue(built.exists(), f"{built} is not there: build all targets")
        (self.scratch / "libcuda.so.1").symlink_to(DRIVER)
        programs = self.scratch / "bin"
        programs.mkdir()
        for name in ("lockstep", "lockstep-coordinator", "lockstep-worker"):
            shutil.copy(BIN / name, programs)
        (programs / "liblockstep-cuda.so").touch()
        changes = self.scratch / "changes"
        job = self.job(self.small_data(), model={"name": "mlp"}, cluster={"device": "cuda"},
                       comm={"backend": "nccl"}, train={"global_batch": 64, "slots": 2, "epochs": 1})
        run = self.start(job, "--workers", 2, program=programs / "lockstep", env={
            **os.environ, "LD_PRELOAD": str(WATCH), "LOCKSTEP_TEST_ENVIRONMENT": str(changes),
            "LD_LIBRARY_PATH": f"{self.scratch}:{os.environ.get('LD_LIBRARY_PATH', '')}",
            "FAKE_DRIVER_INIT_ERROR": "0", "FAKE_DRIVER_DEVICES": "2"})
        self.assertEqual(run.wait(), 78, run.text()[-3000:])
        seen = {}
        for line in changes.read_text().splitlines():
            name, threads = line.split()
            seen.setdefault(name, set()).add(int(threads))
        for name in ("NCCL_SOCKET_IFNAME", "NCCL_RAS_ENABLE", "NCCL_NET", "NCCL_COMM_ID",
                     "CUBLAS_WORKSPACE_CONFIG", "CUDA_MODULE_LOADING"):
            self.assertEqual(seen.get(name), {1}, f"{name}: {seen}")


if __name__ == "__main__":
    unittest.main()
