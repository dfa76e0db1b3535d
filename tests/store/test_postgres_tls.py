"""TLS to PostgreSQL, with the options and variables that every client of it has."""

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pgbouncer import needs_pgbouncer, open_pgbouncer
from postgres import NOT_ROOT, PostgresServer, database_of, shared_server

from longboat.errors import DataDirError
from longboat.store.postgres.store import open_postgres
from parts import how, missing

DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
"""A server with TLS: that of the tests has none."""
pytestmark = pytest.mark.skipif(missing("openssl"), reason=how("openssl"))


def make_certificate(folder: Path, name: str) -> Path:
    """Its own authority, for 127.0.0.1; with its key beside it."""
    made, key = folder / f"{name}.pem", folder / f"{name}.key"
    request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "keyUsage=critical,digitalSignature,keyCertSign"]
    words = ["openssl", *request.split(), f"/CN={name}", *names, "-keyout", str(key), "-out", str(made)]
    subprocess.run(words, check=True, capture_output=True)
    return made


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where others may look into."""
    made = Path(tempfile.mkdtemp(prefix="lb-tls-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    """The address of a PostgreSQL that speaks TLS at 127.0.0.1."""
    if not DEBIAN:
        pytest.skip("needs a PostgreSQL with TLS: apt install postgresql")
    certificate = make_certificate(folder, "server")
    key = certificate.with_suffix(".key")
    shutil.chown(key, NOT_ROOT)
    settings = {"listen_addresses": "127.0.0.1", "port": str(free_port()), "ssl": "on"}
    settings |= {"ssl_cert_file": str(certificate), "ssl_key_file": str(key)}
    opened = PostgresServer(Path(tempfile.mkdtemp(prefix="lb-pg-", dir="/tmp")), programs=DEBIAN[-1], **settings)
    try:
        opened.start()
        yield f"postgresql://postgres@127.0.0.1:{settings['port']}/postgres"
    finally:
        opened.remove()


@pytest.fixture
def pooler(folder: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a pgbouncer that speaks TLS at 127.0.0.1."""
    certificate = make_certificate(folder, "server")
    key = certificate.with_suffix(".key")
    shutil.chown(key, NOT_ROOT)
    more = {"client_tls_sslmode": "require", "client_tls_key_file": key, "client_tls_cert_file": certificate}
    database = database_of(tmp_path).split("/")[3].partition("?")[0]
    with open_pgbouncer(shared_server(), database, mode="session", more=more) as address:
        yield address


@pytest.mark.parametrize("whose", ["server", pytest.param("pooler", marks=needs_pgbouncer)])
async def test_the_certificate_is_checked_as_sslmode_says(
    whose: str, folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    address: str = request.getfixturevalue(whose)
    stranger = make_certificate(folder, "stranger")
    own = folder / "server.pem"
    await check_encrypted(f"{address}?sslmode=verify-full&sslrootcert={own}")
    assert "certificate" in await refusal(f"{address}?sslmode=verify-full&sslrootcert={stranger}")
    other_name = address.replace("127.0.0.1", "localhost")
    assert "certificate" in await refusal(f"{other_name}?sslmode=verify-full&sslrootcert={own}")
    await check_encrypted(f"{other_name}?sslmode=verify-ca&sslrootcert={own}")
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    monkeypatch.setenv("PGSSLROOTCERT", str(stranger))
    assert "certificate" in await refusal(address)
    monkeypatch.setenv("PGSSLROOTCERT", str(own))
    await check_encrypted(address)


async def check_encrypted(address: str) -> None:
    async with open_postgres(address) as store:
        transport = store._writer._connection._transport
        assert transport.get_extra_info("ssl_object") is not None


async def refusal(address: str) -> str:
    with pytest.raises(DataDirError) as refused:
        async with open_postgres(address):
            pass
    assert refused.value.code == "store_unreachable"
    return refused.value.message
