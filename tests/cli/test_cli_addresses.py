"""By which addresses others reach a server."""

import socket

import pytest

from longboat.cli.addresses import for_others


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("127.0.0.1", ()),
        ("::1", ()),
        ("localhost", ()),
        ("192.168.1.5", ("192.168.1.5",)),
        ("box.example.org", ("box.example.org",)),
    ],
)
def test_one_address_is_that_address_unless_it_is_of_this_machine_alone(host: str, found: tuple[str, ...]) -> None:
    assert for_others(host) == found


@pytest.mark.parametrize(("host", "family"), [("0.0.0.0", socket.AF_INET), ("::", socket.AF_INET6)])
def test_all_addresses_are_those_of_this_machine_that_are_not_its_own_alone(
    host: str, family: socket.AddressFamily
) -> None:
    found = for_others(host)
    assert len(set(found)) == len(found)
    assert not {"127.0.0.1", "::1"} & set(found)
    for address in found:
        with socket.socket(family, socket.SOCK_STREAM) as own:
            own.bind((address, 0))  # which only an address of this machine allows
