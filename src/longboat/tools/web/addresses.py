"""Which network addresses a tool may reach. Knows addresses, not host names.

A web page or a model must not lead a tool to what only this machine can reach: itself, its network, its cloud's keys.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAT64 = ip_network("64:ff9b::/96")
_CLOSED = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # behind carriers' NAT; a cloud keeps its keys here
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's own service on a public number
        "169.254.0.0/16",  # most clouds keep their keys here
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
_OPEN_V6 = ip_network("2000::/3")
_CLOSED_V6 = tuple(ip_network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """The networks a setting names; a ValueError says which text is none."""
    return tuple(ip_network(text, strict=False) for text in texts)


def may_reach(text: str, allowed: Iterable[Network] = ()) -> bool:
    """Whether an address is public, or in a network that the user allowed."""
    address = _inner(ip_address(text.partition("%")[0]))
    if any(address in network for network in allowed):
        return True
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED)
    return address in _OPEN_V6 and not any(address in network for network in _CLOSED_V6)


def _inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 address only wraps."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address
