"""How long a server may take to begin its answer, by where it is and what is configured."""

from typing import Any

import pytest
from test_registry import MINE, adapter_of, registry_of

from longboat.models.openai_chat import OpenAIChatModel
from longboat.models.pydantic_adapter import PydanticModel
from longboat.models.silence import ELSEWHERE_S, NEARBY_S, OWN_API_S, is_nearby, silence_limit_s


@pytest.mark.parametrize(
    ("url", "nearby"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost:11434/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://10.1.2.3/v1", True),
        ("http://172.16.0.9/v1", True),
        ("http://192.168.1.20:1234", True),
        ("http://169.254.1.1/v1", True),
        ("http://[fd00::1]/v1", True),
        ("http://gpu:8000/v1", True),
        ("http://gpu.lan/v1", True),
        ("http://gpu.local/v1", True),
        ("http://models.internal/v1", True),
        ("http://app.localhost/v1", True),
        ("http://100.64.0.7:11434/v1", True),
        ("http://100.127.255.1/v1", True),
        ("http://gpu.tail1234.ts.net:11434/v1", True),
        ("http://gpu.fritz.box/v1", True),
        ("http://gpu.home.arpa/v1", True),
        ("http://gpu.local./v1", True),
        ("http://100.128.0.1/v1", False),
        ("https://ts.net.example.com/v1", False),
        ("https://api.openai.com/v1", False),
        ("https://8.8.8.8/v1", False),
        ("https://172.32.0.1/v1", False),
        ("https://[2606:4700::1]/v1", False),
        ("https://local.example.com/v1", False),
        ("https://notlocalhost.com/v1", False),
        ("http://[broken/v1", False),
        ("", False),
    ],
)
def test_a_server_is_nearby_on_this_machine_and_in_private_networks(url: str, nearby: bool) -> None:
    assert is_nearby(url) is nearby


@pytest.mark.parametrize(
    ("url", "configured", "wanted"),
    [
        ("http://127.0.0.1:8080/v1", None, NEARBY_S),
        ("https://api.example.com/v1", None, ELSEWHERE_S),
        (None, None, ELSEWHERE_S),
        ("http://127.0.0.1:8080/v1", 7, 7),
        ("https://api.example.com/v1", 900, 900),
        (None, 900, 900),
        (None, 0, ELSEWHERE_S),
    ],
)
def test_what_is_configured_counts_before_the_address(url: str | None, configured: float | None, wanted: float) -> None:
    assert silence_limit_s(url, configured) == wanted


def limits_of(section: dict[str, Any], **entry: Any) -> tuple[float, float]:
    """Until the answer begins, and between two pieces."""
    provider = {"api_key": "x", **section, "models": [{"id": "m", **entry}]}
    adapter = adapter_of(registry_of({"providers": {"mine": provider}, "models": {"large": "mine/m"}}))
    if isinstance(adapter, OpenAIChatModel):
        return adapter._timeouts.first_s, adapter._timeouts.idle_s
    assert isinstance(adapter, PydanticModel)
    return adapter._endpoint.first_token_s, adapter._endpoint.idle_s


@pytest.mark.parametrize(
    ("section", "default"),
    [
        ({"type": "openai-compatible", "base_url": "http://127.0.0.1:8080/v1"}, NEARBY_S),
        ({"type": "openai-compatible", "base_url": "https://api.example.com/v1"}, ELSEWHERE_S),
        ({"type": "anthropic-compatible", "base_url": "http://192.168.1.20:8080"}, NEARBY_S),
        ({"type": "anthropic-compatible", "base_url": "https://api.example.com"}, OWN_API_S),
        ({"type": "anthropic"}, OWN_API_S),
        ({"type": "google"}, OWN_API_S),
        ({"type": "mistral"}, OWN_API_S),
        ({"type": "openai"}, OWN_API_S),
    ],
)
def test_the_registry_gives_every_adapter_its_limits(section: dict[str, Any], default: float) -> None:
    assert limits_of(section) == (default, default)
    assert limits_of(section, first_token_s=900) == (900, default)
    assert limits_of(section, idle_s=900) == (default, 900)


@pytest.mark.parametrize(("configured", "wanted"), [(None, None), ("always", "always"), ("never", "never")])
def test_the_registry_tells_the_chat_adapter_which_reasoning_to_send(
    configured: str | None, wanted: str | None
) -> None:
    entry = {"id": "m"} if configured is None else {"id": "m", "send_reasoning": configured}
    adapter = adapter_of(registry_of({"providers": {"mine": {**MINE, "models": [entry]}}}))
    assert isinstance(adapter, OpenAIChatModel)
    assert adapter._usual_dialect().send_reasoning == wanted
