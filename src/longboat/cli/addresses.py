"""Finds the addresses at which other machines can reach a server that listens on all interfaces. Best effort and fast:
looks up no names and sends nothing.

Apart from `serve.py`, its only user: that is a command and what it says; this asks the kernel about interfaces.
"""

import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address

NOT_FOR_OTHERS = ("br-", "docker", "lxc", "podman", "veth", "virbr")
"""Prefixes of interfaces that lead to containers and virtual machines on this machine."""
SIOCGIFADDR = 0x8915
"""The Linux ioctl that returns an interface's IPv4 address."""


def for_others(host: str) -> tuple[str, ...]:
    """The addresses of a server listening at `host` to try from other machines, likeliest first."""
    try:
        given = ip_address(host or "0.0.0.0")
    except ValueError:
        return () if host == "localhost" else (host,)
    if not given.is_unspecified:
        return () if given.is_loopback else (host,)
    found = dict.fromkeys((*_routed(given), *(_of_interfaces() if given.version == 4 else ())))
    return tuple(each for each in found if not (ip_address(each).is_loopback or ip_address(each).is_link_local))


def _routed(kind: IPv4Address | IPv6Address) -> Iterator[str]:
    """This machine's source address for outgoing traffic. Connecting a datagram socket sends nothing."""
    family, elsewhere = (socket.AF_INET, "192.0.2.1") if kind.version == 4 else (socket.AF_INET6, "2001:db8::1")
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((elsewhere, 9))
        yield probe.getsockname()[0]


def _of_interfaces() -> Iterator[str]:
    if sys.platform != "linux":
        return
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # the interface has no address or is down
                if not name.startswith(NOT_FOR_OTHERS):
                    told = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                    yield socket.inet_ntoa(told[20:24])
