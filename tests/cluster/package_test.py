"""The Debian package and the tar that cpack makes, installed where nothing else is but what the package
says it needs, and LibTorch at another place than on the machine that built it: both train there."""
import pathlib
import re
import shutil
import subprocess
import unittest

from clean_root import WHY_NOT, inside, make_root
from harness import BIN, DEADLINE_S, ROOT, LockstepTest

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LOCKSTEP_TORCH_ROOT": "/opt/wheels/torch"}


def wheels():
    """The site-packages that the worker was built with."""
    torch = subprocess.run([ROOT / "deploy/install_deps.sh", "--print-torch-root"], check=True,
                           capture_output=True, text=True).stdout.strip()
    return pathlib.Path(torch).parent


def programs_of(tree):
    return [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()
            and path.read_bytes()[:4] == b"\x7fELF"]


@unittest.skipIf(WHY_NOT, f"no root can be made here: {WHY_NOT}")
class Package(LockstepTest):
    def setUp(self):
        super().setUp()
        self.packages = self.scratch / "packages"
        out = subprocess.run(["cpack", "-B", self.packages, "--config", BIN.parent / "CPackConfig.cmake"],
                             cwd=self.scratch, capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(out.returncode, 0, out.stdout[-2000:] + out.stderr[-2000:])
        self.deb, = self.packages.glob("*.deb")
        self.tar, = self.packages.glob("*.tar.gz")
        depends = subprocess.run(["dpkg-deb", "-f", self.deb, "Depends"], capture_output=True, text=True,
                                 check=True).stdout
        self.root = make_root(self.scratch, [re.split(r"[ (|]", one.strip())[0]
                                             for one in depends.split(",")])

    def trains(self, program, run):
        """A run of `program` in the root has the weights of one by the build itself."""
        (self.scratch / "runs").mkdir(exist_ok=True)
        data, job = self.small_data(), self.job("/data", model={"name": "mlp"})
        shutil.copy(job, self.root / "job.yaml")
        out = inside(self.root, [program, "run", "/job.yaml", "--workers", "2", "--run-dir",
                                 f"/runs/{run}"], ENV,
                     mounts=[(data, "data"), (self.scratch / "runs", "runs"),
                             (wheels(), "opt/wheels")])
        self.assertEqual(out.returncode, 0, out.stdout[-2000:] + out.stderr[-2000:])
        here = self.finish(self.job(data, model={"name": "mlp"}), "--workers", 1)
        self.assertIn(here.summary()["weights_sha256"],
                      (self.scratch / "runs" / run / "summary.json").read_text())

    def assert_no_paths_of_the_build(self, tree):
        programs = programs_of(tree)
        self.assertGreaterEqual(len(programs), 3)
        for path in programs:
            header = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
            self.assertNotRegex(header.stdout, "R(UN)?PATH", path)

    def test_the_debian_package_installs_beside_its_dependencies_and_trains(self):
        out = subprocess.run(["dpkg", f"--root={self.root}", "--install", self.deb],
                             capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(out.returncode, 0, out.stdout[-2000:] + out.stderr[-2000:])
        self.assert_no_paths_of_the_build(self.root / "usr/lib/lockstep")
        self.trains("/usr/bin/lockstep", "deb")
        without = inside(self.root, ["/usr/lib/lockstep/lockstep-worker", "--help"],
                         {"PATH": "/usr/bin:/bin"})
        self.assertEqual(without.returncode, 78, without.stderr)
        self.assertIn("LOCKSTEP_PYTHON", without.stderr)

    def test_the_tar_works_wherever_it_is_unpacked_and_is_what_cmake_installs(self):
        place = self.root / "srv/some where"
        place.mkdir(parents=True)
        subprocess.run(["tar", "-xzf", self.tar, "-C", place, "--strip-components=1"], check=True)
        self.assert_no_paths_of_the_build(place)
        self.trains("/srv/some where/bin/lockstep", "tar")
        installed = self.scratch / "installed"
        subprocess.run(["cmake", "--install", BIN.parent, "--prefix", installed], check=True,
                       capture_output=True, timeout=DEADLINE_S)
        self.assertEqual(*(sorted(str(path.relative_to(tree)) for path in tree.rglob("*"))
                           for tree in (place, installed)))


if __name__ == "__main__":
    unittest.main()
