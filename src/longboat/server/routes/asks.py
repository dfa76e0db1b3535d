"""What the agent asks people: pending permissions and questions, and their answers. The jobs it left running."""

from litestar import get, post
from litestar.params import FromPath

from longboat.server.bodies import read_body
from longboat.server.routes.request import HttpRequest, W, takes, workspace_of
from longboat.wire.models import (
    JobPage,
    LspPage,
    McpPage,
    Permission,
    PermissionPage,
    Question,
    QuestionPage,
    SkillPage,
)
from longboat.wire.requests import AnswerPermission, AnswerQuestion


@get(W + "/permissions")
async def list_permissions(request: HttpRequest) -> PermissionPage:
    """What waits for somebody's word, oldest first."""
    return PermissionPage(items=await (await workspace_of(request)).asks.permissions())


@post(W + "/permissions/{permission_id:str}", status_code=200, opt=takes(AnswerPermission, also=(409,)))
async def answer_permission(request: HttpRequest, permission_id: FromPath[str]) -> Permission:
    """Answer a permission. The first answer wins; a later one gets 409 with who was faster."""
    answer = await read_body(request, AnswerPermission)
    return await (await workspace_of(request)).asks.answer_permission(permission_id, answer)


@get(W + "/questions")
async def list_questions(request: HttpRequest) -> QuestionPage:
    """What waits for an answer, oldest first."""
    return QuestionPage(items=await (await workspace_of(request)).asks.questions())


@post(W + "/questions/{question_id:str}", status_code=200, opt=takes(AnswerQuestion, also=(409,)))
async def answer_question(request: HttpRequest, question_id: FromPath[str]) -> Question:
    """Answer a question. The first answer wins; a later one gets 409 with who was faster."""
    answer = await read_body(request, AnswerQuestion)
    return await (await workspace_of(request)).asks.answer_question(question_id, answer)


@get(W + "/jobs")
async def list_jobs(request: HttpRequest) -> JobPage:
    """The commands in the background of a workspace, oldest first."""
    return JobPage(items=(await workspace_of(request)).bench.jobs_shown())


@get(W + "/mcp")
async def list_mcp(request: HttpRequest) -> McpPage:
    """The MCP servers of a workspace and how they are doing."""
    return McpPage(items=await (await workspace_of(request)).bench.mcp_shown())


@get(W + "/lsp")
async def list_lsp(request: HttpRequest) -> LspPage:
    """The language servers that were needed so far, and how they are doing."""
    return LspPage(items=await (await workspace_of(request)).bench.lsp_shown())


@get(W + "/skills")
async def list_skills(request: HttpRequest) -> SkillPage:
    """What the project's and the user's files offer: skills, commands, sub-agents; and what is wrong with them."""
    return await (await workspace_of(request)).bench.offered()


HANDLERS = [
    list_permissions,
    answer_permission,
    list_questions,
    answer_question,
    list_jobs,
    list_mcp,
    list_lsp,
    list_skills,
]
