"""Pending permissions and questions, and their answers. Also MCP servers, language servers and skills."""

from litestar import get, post
from litestar.params import FromPath

from longboat.server.routes.request import HttpRequest, W, read_body, readable_of, takes, workspace_of
from longboat.wire.asks import Permission, PermissionPage, Question, QuestionPage
from longboat.wire.requests import AnswerPermission, AnswerQuestion, McpLogin
from longboat.wire.workspace_state import LspPage, McpEvent, McpPage, SkillPage


@get(W + "/permissions")
async def list_permissions(request: HttpRequest) -> PermissionPage:
    """The pending permissions, oldest first."""
    return PermissionPage(items=await (await readable_of(request)).asks.permissions())


@post(W + "/permissions/{permission_id:str}", status_code=200, opt=takes(AnswerPermission, also=(409,)))
async def answer_permission(request: HttpRequest, permission_id: FromPath[str]) -> Permission:
    """Answer a permission. The first answer wins; later ones get 409 with the name of who answered."""
    answer = await read_body(request, AnswerPermission)
    return await (await workspace_of(request)).answer_permission(permission_id, answer)


@get(W + "/questions")
async def list_questions(request: HttpRequest) -> QuestionPage:
    """The pending questions, oldest first."""
    return QuestionPage(items=await (await readable_of(request)).asks.questions())


@post(W + "/questions/{question_id:str}", status_code=200, opt=takes(AnswerQuestion, also=(409,)))
async def answer_question(request: HttpRequest, question_id: FromPath[str]) -> Question:
    """Answer a question. The first answer wins; later ones get 409 with the name of who answered."""
    answer = await read_body(request, AnswerQuestion)
    return await (await workspace_of(request)).asks.answer_question(question_id, answer)


@get(W + "/mcp")
async def list_mcp(request: HttpRequest) -> McpPage:
    """The MCP servers of a workspace and their state."""
    return McpPage(items=await (await workspace_of(request)).tools.mcp_shown())


@post(W + "/mcp/{name:str}/login", status_code=200, opt=takes(McpLogin, also=(409,)))
async def login_mcp(request: HttpRequest, name: FromPath[str]) -> McpEvent:
    """Log in to an MCP server. Without redirect_url, connects to it; `authorization_url` in the response is the page
    that a person must open, if any. With redirect_url, the address where the browser ended, completes the login: for
    a browser on another machine, which cannot reach this server. 409 if no such login is pending."""
    asked = await read_body(request, McpLogin)
    return await (await workspace_of(request)).mcp_login(name, asked)


@get(W + "/lsp")
async def list_lsp(request: HttpRequest) -> LspPage:
    """The language servers that were needed so far, and their state."""
    return LspPage(items=await (await workspace_of(request)).tools.lsp_shown())


@get(W + "/skills")
async def list_skills(request: HttpRequest) -> SkillPage:
    """The skills, custom commands and sub-agents in the project's and the user's files, and the problems found in them.
    The commands include the prompts of connected MCP servers."""
    return await (await workspace_of(request)).tools.list_skills()


HANDLERS = [
    list_permissions,
    answer_permission,
    list_questions,
    answer_question,
    list_mcp,
    login_mcp,
    list_lsp,
    list_skills,
]
