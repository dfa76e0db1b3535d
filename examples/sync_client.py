"""Without asyncio: send two prompts in one session, then print the transcript.

python examples/sync_client.py
"""

from longboat.client import SyncClient
from longboat.wire.models import TextPart

with SyncClient() as client:
    workspace = client.join(".")
    session = client.create_session(workspace.id, "from a script")
    for prompt in ("Name a colour.", "And another one."):
        for event in client.run(prompt, workspace_id=workspace.id, session_id=session.id):
            if event.type == "run_complete":
                print(event.payload.text)
    for message in client.messages(workspace.id, session.id).items:
        text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
        print(f"{message.role:>9}: {text}")
