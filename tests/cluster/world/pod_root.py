"""The file system and the walls of a container, made of namespaces instead of by an engine:
- a read-only root with the system's programs and Lockstep in /opt/lockstep, and the volumes at
  their places
- a PID namespace in which the command is process 1
- the user and capabilities of the manifest
- the network namespace of the pod"""
import os
import pathlib
import shlex
import subprocess

from harness import BIN, ROOT, SLOW_SLOTS

SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
SLOW_SLOTS_HERE = "/opt/lockstep/test/" + SLOW_SLOTS.name
DEVICES = ("null", "zero", "full", "random", "urandom")
ETC = {"passwd": "root:x:0:0::/:/usr/sbin/nologin\nlockstep:x:65532:65532::/home/lockstep:/bin/sh\n",
       "group": "root:x:0:\nlockstep:x:65532:\n", "nsswitch.conf": "hosts: files dns\n"}


def torch_libraries():
    """The place where the worker finds LibTorch, outside the system's folders."""
    out = subprocess.run(["ldd", BIN / "lockstep-worker"], capture_output=True, text=True, check=True)
    paths = [line.split(" => ")[1].split()[0] for line in out.stdout.splitlines() if " => /" in line]
    return sorted({str(pathlib.Path(p).parent) for p in paths
                   if pathlib.Path(p).parts[1] not in SYSTEM})


class PodRoot:
    """The settings that a container starts with. `mounts`: (source on the host, path,
    read only)."""

    def __init__(self, directory, hosts, hostname, mounts, security, pod_security):
        self.directory = pathlib.Path(directory)
        self.hostname = hostname
        self.security, self.pod_security = security, pod_security
        self.mounts = [(BIN, "/opt/lockstep/bin", True),
                       (SLOW_SLOTS.parent, str(pathlib.Path(SLOW_SLOTS_HERE).parent), True),
                       (ROOT / "deploy/container", "/opt/lockstep/etc", True), *mounts,
                       *((path, path, True) for path in torch_libraries())]
        self.hosts = hosts
        (self.directory / "etc").mkdir(parents=True)
        for name, text in ETC.items():
            (self.directory / "etc" / name).write_text(text)

    def _script(self, command):
        """Makes the root, and ends in the command as process 1."""
        root = "/mnt"
        lines = ["set -e", "mount --make-rprivate /", f"hostname {shlex.quote(self.hostname)}",
                 f"mount -t tmpfs -o mode=755 pod {root}", f"cd {root}",
                 "mkdir etc proc dev"]
        for name in SYSTEM:
            lines.append(f"if [ -L /{name} ]; then cp -P /{name} {name}; elif [ -d /{name} ]; then "
                         f"mkdir {name}; mount --rbind /{name} {name}; fi")
        lines += [f"cp {shlex.quote(str(self.directory / 'etc'))}/* etc/",
                  "cp -r /etc/ld.so.conf /etc/ld.so.conf.d /etc/ld.so.cache etc/",
                  "for d in alternatives openmpi; do [ ! -d /etc/$d ] || cp -rP /etc/$d etc/; done",
                  "mkdir etc/ssh", f"cp {ROOT}/deploy/container/ssh_config etc/ssh/ssh_config",
                  "touch etc/hosts", f"mount --bind {shlex.quote(str(self.hosts))} etc/hosts",
                  "mount -t proc proc proc", "mount -t tmpfs -o mode=755 dev dev", "mkdir dev/shm",
                  "mount -t tmpfs -o mode=1777,size=64m shm dev/shm"]
        lines += [f"touch dev/{d}; mount --bind /dev/{d} dev/{d}" for d in DEVICES]
        for source, path, read_only in self.mounts:
            place = shlex.quote(path.lstrip("/"))
            lines += [f"mkdir -p {place}", f"mount --bind {shlex.quote(str(source))} {place}"]
            if read_only:
                lines.append(f"mount -o remount,ro,bind {place}")
        if self.security["readOnlyRootFilesystem"]:
            lines.append(f"mount -o remount,ro {root}")
        lines.append("exec " + " ".join(map(shlex.quote, self._confined(command, root))))
        return "\n".join(lines)

    def _confined(self, command, root):
        user, group = (str(self.pod_security[key]) for key in ("runAsUser", "runAsGroup"))
        words = ["/usr/sbin/chroot", root, "setpriv", "--reuid", user, "--regid", group, "--clear-groups"]
        if not self.security["allowPrivilegeEscalation"]:
            words.append("--no-new-privs")
        if self.security["capabilities"]["drop"] == ["ALL"]:
            words += ["--bounding-set", "-all", "--inh-caps", "-all"]
        return [*words, *command]

    def start(self, prefix, command, env, output):
        """`prefix` enters the pod's network namespace."""
        argv = [*prefix, "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child",
                "sh", "-c", self._script(command)]
        with open(output, "ab") as out:
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                    env={"PATH": "/opt/lockstep/bin:" + os.defpath, **env},
                                    start_new_session=True)


def first_process(process):
    """The pid, here, of process 1 of the namespace that `unshare` made. None: it is gone."""
    try:
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    except OSError:
        return None
    return int(children.split()[0]) if children.split() else None
