"""By which addresses other machines reach a server that listens on all of this machine's. Best effort, and at once: no
names are looked up and nothing is sent."""

import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address

NOT_FOR_OTHERS = ("br-", "docker", "lxc", "podman", "veth", "virbr")
"""How the interfaces begin that lead to containers of this machine."""
SIOCGIFADDR = 0x8915
"""The ioctl of Linux that tells the IPv4 address of an interface."""


def for_others(host: str) -> tuple[str, ...]:
    """The addresses to try from elsewhere, the likeliest first, of a server that listens at `host`."""
    try:
        given = ip_address(host or "0.0.0.0")
    except ValueError:
        return () if host == "localhost" else (host,)
    if not given.is_unspecified:
        return () if given.is_loopback else (host,)
    found = dict.fromkeys((*_routed(given), *(_of_interfaces() if given.version == 4 else ())))
    return tuple(each for each in found if not (ip_address(each).is_loopback or ip_address(each).is_link_local))


def _routed(kind: IPv4Address | IPv6Address) -> Iterator[str]:
    """The address that this machine would use towards others. Connecting a datagram socket sends nothing."""
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
            with suppress(OSError):  # it has none, or is down
                if not name.startswith(NOT_FOR_OTHERS):
                    told = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                    yield socket.inet_ntoa(told[20:24])
