"""Reasoning signatures as one string for our schema. Some providers need an id back with the signature. Pure."""

import json


def pack(part_id: str | None, secret: str) -> str:
    return secret if part_id is None else json.dumps({"id": part_id, "signature": secret})


def unpack(packed: str) -> tuple[str | None, str]:
    if not packed.startswith("{"):
        return None, packed
    fields = json.loads(packed)
    return fields["id"], fields["signature"]
