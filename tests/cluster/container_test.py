"""deploy/container/Containerfile. No engine is here, so its steps are run: what goes into the build
context is configured, and what the runtime stage installs and copies, and nothing else, becomes a root
in which a run is trained, as its user, read only."""
import fnmatch
import re
import shlex
import shutil
import subprocess
import unittest

from clean_root import WHY_NOT, inside, make_root
from harness import BIN, DEADLINE_S, ROOT, LockstepTest

CONTAINERFILE = ROOT / "deploy/container/Containerfile"


def stages():
    """[(name, [(instruction, arguments)])], with continued lines joined."""
    lines = re.sub(r"\\\n\s*", " ", CONTAINERFILE.read_text()).splitlines()
    found = []
    for line in lines:
        if not line or line.startswith("#"):
            continue
        word, rest = line.split(None, 1)
        if word == "FROM":
            found.append((rest.split(" AS ")[-1], []))
        else:
            found[-1][1].append((word, rest))
    return dict(found[:-1]), found[-1]


def installed_by(run):
    """Packages of a RUN's apt-get install."""
    words = shlex.split(run.split("apt-get install", 1)[1].split("&&")[0])
    return [word for word in words if not word.startswith("-")]


def ignored(path, patterns):
    return any(fnmatch.fnmatch(path, p) or path.startswith(p + "/") or
               (p.startswith("**/") and fnmatch.fnmatch(path.rsplit("/", 1)[-1], p[3:]))
               for p in patterns)


@unittest.skipIf(WHY_NOT, f"no root can be made here: {WHY_NOT}")
class Container(LockstepTest):
    def test_what_is_copied_into_the_build_is_enough_to_configure(self):
        patterns = [line for line in (ROOT / ".containerignore").read_text().split("\n")
                    if line and not line.startswith("#")]
        tracked = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others",
                                  "--exclude-standard"], capture_output=True, text=True, check=True)
        context = self.scratch / "context"
        for name in tracked.stdout.splitlines():
            if not ignored(name, patterns) and (ROOT / name).exists():
                (context / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, context / name)
        self.assertFalse((context / "tests").exists())
        run, _ = stages()
        configure = next(rest for word, rest in run["build"] if word == "RUN" and "--preset" in rest)
        self.assertIn("-DLOCKSTEP_TESTS=OFF", configure)
        command = configure.replace("LOCKSTEP_DEPS_DIR=/opt/deps ", "")
        out = subprocess.run(shlex.split(command), cwd=context, capture_output=True, text=True,
                             timeout=DEADLINE_S)
        self.assertEqual(out.returncode, 0, out.stdout[-2000:] + out.stderr[-2000:])

    def test_every_copied_file_is_there(self):
        run, last = stages()
        for name, instructions in run.items():
            for word, rest in instructions:
                if word == "COPY" and not rest.startswith(("--from", ". ")):
                    self.assertTrue((ROOT / rest.split()[0]).exists(), f"{name}: {rest}")
        self.assertEqual(last, ("runtime", []), "what is built when no target is named")
        for name in ("runtime", "mpi"):
            self.assertEqual([rest for word, rest in run[name] if word == "USER"][-1], "65532:65532")

    def make_root(self, steps):
        """Makes the stage's root from the files of this machine's packages."""
        install = next(rest for word, rest in steps if word == "RUN" and "apt-get" in rest)
        root = make_root(self.scratch, installed_by(install))
        subprocess.run([ROOT / "deploy/container/collect.sh", BIN, root / "opt/lockstep"], check=True,
                       timeout=DEADLINE_S)
        for word, rest in steps:
            if word == "RUN" and "apt-get" not in rest:
                subprocess.run(["/usr/sbin/chroot", root, "sh", "-ec", rest], check=True, timeout=DEADLINE_S,
                               env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        return root

    def test_the_runtime_stage_trains_read_only_as_its_user(self):
        steps = stages()[0]["runtime"]
        root = self.make_root(steps)
        env = dict(rest.split("=", 1) for word, rest in steps if word == "ENV")
        (self.scratch / "runs").mkdir()
        shutil.chown(self.scratch / "runs", 65532, 65532)
        data, job = self.small_data(), self.job("/data", model={"name": "mlp"})
        shutil.copy(job, root / "job.yaml")
        out = inside(root, ["/opt/lockstep/bin/lockstep", "run", "/job.yaml", "--workers", "2",
                            "--run-dir", "/runs/first"], env, user="65532:65532",
                     mounts=[(data, "data"), (self.scratch / "runs", "runs")])
        self.assertEqual(out.returncode, 0, out.stdout[-2000:] + out.stderr[-2000:])
        here = self.finish(self.job(data, model={"name": "mlp"}), "--workers", 1)
        summary = (self.scratch / "runs/first/summary.json").read_text()
        self.assertIn(here.summary()["weights_sha256"], summary)


if __name__ == "__main__":
    unittest.main()
