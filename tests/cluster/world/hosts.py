"""Hosts of a network, as network namespaces on one machine. Each host has its own loopback, and an
address on an Ethernet. A bridge in one more namespace makes the Ethernet. All hosts share the file
system."""
import os
import subprocess

from harness import DEADLINE_S

SUBNET = "10.77.0"
NETWORK = f"{SUBNET}.0/24"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=DEADLINE_S)


def why_not():
    """Why this machine cannot make hosts, as half a sentence; else empty."""
    name = f"lockstep-{os.getpid()}-probe"
    try:
        ip("netns", "add", name)
    except FileNotFoundError:
        return "there is no ip (package iproute2)"
    except subprocess.CalledProcessError as error:
        return f"network namespaces cannot be made here: {error.stderr.strip()}"
    try:
        ip("-n", name, "link", "add", "bridge", "type", "bridge")
    except subprocess.CalledProcessError as error:
        return f"a bridge cannot be made here: {error.stderr.strip()}"
    finally:
        ip("netns", "del", name)
    return ""


class Hosts:
    """`count` hosts, until close()."""

    def __init__(self, count):
        self.names = [f"lockstep-{os.getpid()}-{i}" for i in range(count)]
        self.switch = f"lockstep-{os.getpid()}-switch"
        self.made = []
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self):
        for name in [self.switch, *self.names]:
            ip("netns", "add", name)
            self.made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge", "up")
        for i, name in enumerate(self.names):
            port = f"port{i}"
            ip("-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", "eth0",
               "netns", name)
            ip("-n", self.switch, "link", "set", port, "master", "bridge", "up")
            ip("-n", name, "address", "add", f"{self.address(i)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")

    def address(self, i):
        return f"{SUBNET}.{i + 1}"

    def on(self, i):
        """The prefix that makes a command run on host i."""
        return ["ip", "netns", "exec", self.names[i]]

    def cut(self, i):
        """Pulls the cable of host i."""
        ip("-n", self.switch, "link", "set", f"port{i}", "down")

    def mend(self, i):
        ip("-n", self.switch, "link", "set", f"port{i}", "up")

    def close(self):
        while self.made:
            ip("netns", "del", self.made.pop())
