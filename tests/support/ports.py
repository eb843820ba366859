"""Ports for tests that listen."""

import random
import socket
from pathlib import Path

_given = []  # a socket for each port, whose name no other has while this process lives


def free_port():
    """A port of which the system makes no connections of its own, and which no other call of this function
    gives, in any process, while this one lives. So nobody takes it until the test listens there."""
    range_file = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(range_file.read_text().split()[0]) if range_file.exists() else 32768
    for _ in range(1000):
        port = random.randrange(first // 2, first) if first > 4096 else 0
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            port = one.getsockname()[1]
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0baton test port {port}")
        except OSError:
            name.close()
            continue
        _given.append(name)
        return port
    raise OSError(f"expected a free port below {first}, found none")
