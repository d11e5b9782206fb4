# SPDX-License-Identifier: Apache-2.0
"""Hosts that are network and name spaces of this machine, each with a cable of limited rate to one switch.

Must run where namespaces may be made (inside `unshare -rnm`); needs iproute2 and util-linux. Nothing outside is touched.
"""
import os
import pathlib
import secrets
import subprocess
import tempfile

from .processes import ranks_of

ADDRESS = "192.0.2.{}"  # for documentation: routed nowhere
PAYLOAD_SHARE = 1448 / 1514  # of a full frame, as the limiter counts it: less headers of Ethernet, IP, TCP and its time stamps
QUEUE_BYTES = "16mb"  # more than the sockets' buffers hold: nothing is dropped
# By bits a second: bytes that leave a host in one bundle, and bytes of the limiter's bucket. Small bundles pass as on a wire, long
# ones cost the processors less; a bucket above the bundle makes up for late timers.
SHAPES = {100e6: (3000, 6400), 1e9: (18000, 36000)}
# Stands in for ssh: the first word without a dash is the host, the rest is for its shell.
AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec nsenter -t "$(cat "$(dirname "$0")/$host")" -n -u sh -c "$*"
"""


class Trouble(Exception):
    """Why there are no such hosts."""


def shell(*words):
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble(f"{words[0]}: {error}") from error
    if done.returncode != 0:
        raise Trouble(f"{' '.join(map(str, words))}: {done.stderr.strip()}")


class Hosts:
    """Use it in a with statement, which ends them."""

    def __init__(self, count, rate):
        self.count, self.rate, self.holders = count, rate, []
        self.names = [ADDRESS.format(rank + 1) for rank in range(count)]

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        agent = pathlib.Path(self.folder.name) / "agent"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        self.agent = agent
        shell("ip", "link", "add", "switch", "type", "bridge")
        shell("ip", "link", "set", "switch", "up")
        bundle, bucket = SHAPES[self.rate]
        for rank, name in enumerate(self.names):
            # A host lives as long as this process of it.
            holder = subprocess.Popen(["unshare", "-nu", "sh", "-c", f"hostname host{rank} && echo ready && read -r _"],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.holders.append(holder)
            if holder.stdout.readline() != b"ready\n":
                raise Trouble(f"no namespace for host {rank}")
            agent.with_name(name).write_text(str(holder.pid))
            port = f"port{rank}"
            shell("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", holder.pid)
            shell("ip", "link", "set", port, "master", "switch", "up")
            shell(*self.on(rank), "ip", "addr", "add", f"{name}/24", "dev", "eth0")
            shell(*self.on(rank), "ip", "link", "set", "lo", "up")
            shell(*self.on(rank), "ip", "link", "set", "eth0", "up")
            for where, device in (([], port), (self.on(rank), "eth0")):  # what the host is sent, and what it sends
                shell(*where, "ip", "link", "set", device, "gso_max_size", bundle)
                shell(*where, "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{self.rate:.0f}bit", "burst", bucket,
                      "limit", QUEUE_BYTES)

    def __exit__(self, *_):
        for rank in range(len(self.holders)):  # a namespace that ends takes them along some time later: names would be taken still
            subprocess.run(["ip", "link", "del", f"port{rank}"], stderr=subprocess.DEVNULL)
        for holder in self.holders:
            holder.stdin.close()
            holder.wait()
        subprocess.run(["ip", "link", "del", "switch"], stderr=subprocess.DEVNULL)
        self.folder.cleanup()

    def on(self, rank):
        return ["nsenter", "-t", str(self.holders[rank].pid), "-n", "-u"]

    def run(self, name, command, environment, seconds):
        """One process a host, as one job of Shoal's. Rank 0's output; None, after a line that says why."""
        secret = secrets.token_hex(16)

        def of(rank):
            return environment | {
                "SHOAL_RANK": str(rank), "SHOAL_WORLD_SIZE": str(self.count), "SHOAL_LOCAL_RANK": "0", "SHOAL_LOCAL_WORLD_SIZE": "1",
                "SHOAL_RENDEZVOUS": f"{self.names[0]}:29500", "SHOAL_SECRET": secret, "NCCL_HOSTID": f"host{rank}",
                **({"SHOAL_SPIN_US": "0"} if self.count > (os.cpu_count() or 1) else {})}  # each believes to have the machine for itself
        return ranks_of([(name, [*self.on(rank), *command], of(rank)) for rank in range(self.count)], seconds)
