"""What the agent asks people: pending permissions and questions, and their answers. What it has at hand."""

from litestar import get, post
from litestar.params import FromPath

from longboat.server.bodies import read_body
from longboat.server.routes.request import HttpRequest, W, takes, workspace_of
from longboat.wire.asks import Permission, PermissionPage, Question, QuestionPage
from longboat.wire.requests import AnswerPermission, AnswerQuestion, McpLogin
from longboat.wire.workshop import LspPage, McpEvent, McpPage, SkillPage


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


@get(W + "/mcp")
async def list_mcp(request: HttpRequest) -> McpPage:
    """The MCP servers of a workspace and how they are doing."""
    return McpPage(items=await (await workspace_of(request)).tools.mcp_shown())


@post(W + "/mcp/{name:str}/login", status_code=200, opt=takes(McpLogin, also=(409,)))
async def login_mcp(request: HttpRequest, name: FromPath[str]) -> McpEvent:
    """Log in to an MCP server. Without redirect_url it is connected, and `authorization_url` of the answer is the page
    that a person must open, if there is one. With the address that the browser ended at, the login is over: for
    browsers on another machine, which the server's own address does not reach. 409 if it waits for no such login."""
    asked = await read_body(request, McpLogin)
    return await (await workspace_of(request)).mcp_login(name, asked)


@get(W + "/lsp")
async def list_lsp(request: HttpRequest) -> LspPage:
    """The language servers that were needed so far, and how they are doing."""
    return LspPage(items=await (await workspace_of(request)).tools.lsp_shown())


@get(W + "/skills")
async def list_skills(request: HttpRequest) -> SkillPage:
    """What the project's and the user's files offer: skills, commands, sub-agents; and what is wrong with them. Among
    the commands are the prompts of the MCP servers that are connected."""
    return await (await workspace_of(request)).tools.offered()


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
