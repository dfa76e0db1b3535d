"""Our request in pydantic-ai's types. Import it through `pydantic_adapter.py` only: the library is heavy.

Owns which parts of a transcript a provider is sent: not the reasoning of another provider, and with adapted call ids.
"""

import base64
import json
from collections.abc import Callable, Sequence

from pydantic_ai import messages as pai
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from longboat.models.call_ids import mistral_id, portable_id
from longboat.models.images import is_image
from longboat.models.protocol import ModelRequest
from longboat.models.pydantic_adapter import Endpoint
from longboat.wire import models as wire

Fit = Callable[[str], str]
"""Makes a call's id one that the provider takes."""


def parameters(request: ModelRequest, *, native_schema: bool) -> ModelRequestParameters:
    """`native_schema`: the provider can be held to the schema of the answer."""
    wanted = request.schema if native_schema else None
    return ModelRequestParameters(
        output_mode="text" if wanted is None else "native",
        output_object=None if wanted is None else OutputObjectDefinition(json_schema=dict(wanted), name="answer"),
        function_tools=[
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema))
            for tool in request.tools
        ],
        instruction_parts=[pai.InstructionPart(content=request.system)] if request.system else [],
    )


def library_messages(messages: Sequence[wire.Message], endpoint: Endpoint, system: str) -> list[pai.ModelMessage]:
    """`system` is the library's own name of the provider."""
    fit = mistral_id if endpoint.api == "mistral" else portable_id
    tool_names: dict[str, str] = {}
    translated_messages: list[pai.ModelMessage] = []
    for message in messages:
        if message.role is wire.Role.ASSISTANT:
            own = message.provider == endpoint.provider and message.model in (endpoint.name, None)
            answer = _response_parts(message, fit, system if own else None)
            tool_names |= {part.tool_call_id: part.tool_name for part in answer if isinstance(part, pai.ToolCallPart)}
            if answer:
                translated_messages.append(pai.ModelResponse(parts=answer, provider_name=system))
        elif question := _request_parts(message, fit, tool_names):
            translated_messages.append(pai.ModelRequest(parts=question))
    return translated_messages


def _request_parts(message: wire.Message, fit: Fit, tool_names: dict[str, str]) -> list[pai.ModelRequestPart]:
    results: list[pai.ModelRequestPart] = []
    prompt: list[pai.UserContent] = []
    for part in message.parts:
        match part:
            case wire.ToolResultPart():
                results.append(_result(part, fit(part.tool_call_id), tool_names))
            case wire.TextPart() if part.text:
                prompt.append(part.text)
            case wire.FilePart():
                prompt.append(_file(part))
    return [*results, pai.UserPromptPart(content=prompt)] if prompt else results


def _result(part: wire.ToolResultPart, call_id: str, tool_names: dict[str, str]) -> pai.ToolReturnPart:
    images = [
        pai.BinaryContent(data=base64.b64decode(image.data), media_type=image.media_type) for image in part.images
    ]
    return pai.ToolReturnPart(
        tool_name=tool_names.get(call_id, "unknown"),
        content=[part.content, *images] if images else part.content,
        tool_call_id=call_id,
        outcome="failed" if part.tool_failed else "success",
    )


def _file(part: wire.FilePart) -> pai.UserContent:
    """Pictures and PDFs go as they are; what is text goes as text, as on our other wire."""
    data = base64.b64decode(part.data or "")
    if part.text is None and (is_image(part) or part.media_type == "application/pdf"):
        return pai.BinaryContent(data=data, media_type=part.media_type, identifier=part.name)
    try:
        text = data.decode() if part.text is None else part.text
    except UnicodeDecodeError:
        return f"[The file {part.name} ({part.media_type}) cannot be shown to this model.]"
    return f'<file name="{part.name}">\n{text}\n</file>'


def _response_parts(message: wire.Message, fit: Fit, signed_by: str | None) -> list[pai.ModelResponsePart]:
    parts: list[pai.ModelResponsePart] = []
    for part in message.parts:
        match part:
            case wire.TextPart() if part.text:
                parts.append(pai.TextPart(content=part.text))
            case wire.ToolCallPart():
                arguments = _arguments(part.input)
                parts.append(pai.ToolCallPart(tool_name=part.name, args=arguments, tool_call_id=fit(part.id)))
            case wire.ReasoningPart(signature=str(signature)) if signed_by is not None:
                # Reasoning without a signature, or signed for another model, is not sent: no one can use it.
                part_id, secret = unpack(signature)
                if not secret:
                    continue
                parts.append(pai.ThinkingPart(content=part.text, id=part_id, signature=secret, provider_name=signed_by))
    return parts


def _arguments(text: str) -> str:
    """What a cancel cut off is no object any more, and providers refuse it."""
    try:
        return text if isinstance(json.loads(text), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def pack(part_id: str | None, secret: str) -> str:
    return secret if part_id is None else json.dumps({"id": part_id, "signature": secret})


def unpack(packed: str) -> tuple[str | None, str]:
    if not packed.startswith("{"):
        return None, packed
    fields = json.loads(packed)
    return fields.get("id"), fields.get("signature", "")
