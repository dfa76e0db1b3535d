"""Which directory on a server a person means."""

import click
import pytest

from longboat.cli.terminal import _meant
from longboat.wire.models import Workspace

KNOWN = [Workspace(id=f"w-{name}", path=f"/srv/{name}", created_at="t", ready=True, busy=False) for name in "ab"]


@pytest.mark.parametrize("given", ["2", " 2 ", "/srv/b", "/srv/b/", "w-b"])
def test_a_directory_is_named_by_its_number_its_path_or_its_id(given: str) -> None:
    assert _meant(given, KNOWN) == "/srv/b"


@pytest.mark.parametrize("given", ["0", "3", "b", "-1", "/", "/srv", "x\x1b[2J"])
def test_what_names_none_is_refused_in_plain_words(given: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        _meant(given, KNOWN)
    assert "is not in the list: enter a number from 1 to 2, a path or an id." in refused.value.message
    assert "\x1b" not in refused.value.message
