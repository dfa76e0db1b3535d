"""Bodies of model requests: taken apart, put together, measured, and shown without attachments."""

import base64

import msgspec

from longboat.core.request_body import measure_message, parts_of, put_together, take_apart, without_attachments
from longboat.wire.model_requests import RequestPart

IMAGE = base64.b64encode(b"x" * 48_000).decode()


def test_a_body_is_put_together_byte_for_byte() -> None:
    body = msgspec.json.encode(
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": '☃ \u2028 " \\ </script>'},
                {"content": [1.50, None], "role": "tool"},
            ],
            "stream": True,
            "tools": [{"b": 1, "a": 2}],
        }
    )
    frame, messages = take_apart(body)
    assert b"script" not in frame
    assert put_together(frame, messages) == body


def test_attachments_are_shown_by_their_size() -> None:
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}
    file = {"type": "file", "name": "a.pdf", "media_type": "application/pdf", "data": IMAGE}
    said = {"type": "text", "text": "data: what is that?"}
    assert without_attachments({"messages": [{"role": "user", "content": [url, file, said]}]}) == {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "[image, 48 kB]"}},
                    {**file, "data": "[application/pdf, 48 kB]"},
                    said,
                ],
            }
        ]
    }
    part, size = measure_message(msgspec.json.encode({"role": "user", "content": [url]}))
    assert part == "user"
    assert size < 200, "an image is not counted by its letters"


def test_the_shares_of_the_tokens_add_up() -> None:
    parts = parts_of({"tools": 10, "system": 10, "user": 10}, 100)
    assert [part.name for part in parts] == ["system", "tools", "user"]
    assert sum(part.tokens or 0 for part in parts) == 100
    assert parts_of({"user": 5}, None) == (RequestPart(name="user", size=5, tokens=None),)
