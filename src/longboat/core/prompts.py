"""Fixed prompts for the model. Short on purpose: every step pays for every token."""

SUMMARIZE = """\
Write a summary of this conversation for yourself: it will replace everything above.
Keep what you need to continue: the user's goal and wishes, decisions, important files and names, what is done, what \
is left, and what was tried and failed. Write plain text, no greeting."""

TITLE_SYSTEM = "You name conversations. Answer with a title of at most six words and nothing else."

NO_TOOLS = """

You have no tools here: you cannot read or change files, run commands or look anything up, and must not pretend to. \
Work with what people send you, and show them what to change."""

SAY_SOMETHING = "[Your answer was empty. Go on with the task; or, if it is done, say what you did and found.]"

PLAN_FIRST = """

You are planning: you can read and ask, and nothing may be changed yet. Find out what the task needs, then {propose}. \
Do not look for a way to change things before."""
PLAN_WITH_TOOL = (
    "call {tool} with short, concrete steps. Once people approve the plan, you have all tools and carry it out"
)
PLAN_AS_ANSWER = "answer with what you found, or with a plan of short, concrete steps"

GO_ON = "\n\nThe request you are working on:\n\n"

PLAN = "\n\nThe plan so far:\n\n"

REDONE = (
    "[Note: the user has redone file changes of yours that they had undone: {}. Those parts are in the files again; "
    "view a file again before you edit it.]"
)

REVERTED = (
    "[Note: the user has undone some of your file changes since: {}. Leave those parts as they are now unless you are "
    "asked to change them again, and view a file again before you edit it.]"
)
