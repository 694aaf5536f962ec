"""A root with the files of named Debian packages, as this machine has them installed, of their
dependencies, and nothing else. Runs commands in the root, which is read-only, as process 1 of a
namespace."""
import pathlib
import re
import shlex
import shutil
import subprocess

from harness import DEADLINE_S

WHY_NOT = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
                         capture_output=True, text=True).stderr.strip()
if shutil.which("dpkg-query") is None:
    WHY_NOT = "the root is made of Debian's packages, and there is no dpkg-query"


def closure(packages):
    """The packages, their dependencies, and what Debian requires everywhere: everything in an image
    of them."""
    out = subprocess.run(["dpkg-query", "-W", "-f",
                          "${Package}\t${Priority}\t${Depends}, ${Pre-Depends}\n"],
                         capture_output=True, text=True, check=True).stdout
    depends, wanted = {}, list(packages)
    for line in out.splitlines():
        name, priority, needs = line.split("\t")
        depends[name] = [re.split(r"[ :(]", one.strip())[0] for alternatives in needs.split(",")
                         for one in alternatives.split("|") if one.strip()]
        wanted += [name] if priority == "required" else []
    found = set()
    while wanted:
        name = wanted.pop()
        if name in depends and name not in found:
            found.add(name)
            wanted += depends[name]
    return sorted(found), [name for name in packages if name not in depends]


def make_root(scratch, packages):
    """Makes the root in the directory `scratch`. dpkg sees its packages as installed."""
    root = scratch / "root"
    root.mkdir(mode=0o755)
    present, missing = closure(packages)
    if missing:
        raise AssertionError(f"not installed here: {missing}")
    files = subprocess.run(["dpkg-query", "-L", *present], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    listed = scratch / "files"
    kept = sorted({f for f in files if f.startswith("/") and "/share/doc" not in f
                   and "/share/man" not in f and "/share/locale" not in f
                   and not pathlib.Path(f).is_dir() and pathlib.Path(f).exists()})
    listed.write_text("\n".join(kept) + "\n")
    for name in ("bin", "sbin", "lib", "lib64"):  # as base-files of a merged /usr
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    subprocess.run(f"tar -C / --no-recursion -cf - -T {listed} | tar -C {root} --keep-directory-"
                   "symlink -xf -", shell=True, check=True, timeout=DEADLINE_S)
    for name in ("proc", "dev", "tmp", "runs", "data", "home", "var/lib/dpkg/info",
                 "var/lib/dpkg/updates", "var/lib/dpkg/triggers"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("passwd", "group", "shadow", "gshadow"):
        (root / "etc" / name).write_text("")
    status = subprocess.run(["dpkg-query", "-s", *present], capture_output=True, text=True, check=True)
    (root / "var/lib/dpkg/status").write_text(status.stdout)
    return root


def inside(root, command, env=None, user="0:0", mounts=(), timeout=DEADLINE_S, alone=False):
    """Runs `command` in the root. `mounts`: (directory here, path there without its first slash).
    Everything is read-only except these, /tmp and /dev/shm. `alone`: with a network of its own, and
    so without the abstract sockets of processes elsewhere, which it could not see."""
    lines = ["set -e", *(["ip link set lo up"] if alone else []),
             f"mount --bind {root} {root}", f"cd {root}", "mount -t proc proc proc",
             "mount -t tmpfs dev dev", "touch dev/null dev/urandom", "mkdir dev/shm",
             "for d in null urandom; do mount --bind /dev/$d dev/$d; done", "mount -t tmpfs tmp tmp",
             "mount -t tmpfs shm dev/shm"]
    for source, path in mounts:
        place = shlex.quote(path)  # below the new /tmp, too
        lines += [f"mkdir -p {place}", f"mount --bind {shlex.quote(str(source))} {place}"]
    lines += [f"mount -o remount,ro,bind {root}",
              f"exec /usr/sbin/chroot --userspec={user} . " + shlex.join(map(str, command))]
    spaces = ["-m", "-p", *(["-n"] if alone else [])]
    return subprocess.run(["unshare", *spaces, "-f", "--kill-child", "sh", "-c", "\n".join(lines)],
                          capture_output=True, text=True, timeout=timeout, env=env)
