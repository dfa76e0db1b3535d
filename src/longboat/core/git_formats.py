"""Git's format strings: which of their placeholders only print.

Owns the list of known placeholders. Others are refused: to check a signature (`%G?`, `%(signature)`) git runs a
program named in its configuration, and later versions may add more such placeholders.
"""

import re

_ANY_WORD = r"[A-Za-z0-9_=,:;.*+ -]*"
_PERSON = r"[ac](?:n|N|e|E|l|L|d|D|r|t|i|I|s|h)"
_OF_COMMITS = re.compile(
    rf"""%% | %[-+ ]?(?:
        n | x[0-9A-Fa-f]{{2}} | [HhTtPpDdSesfbBNm] | {_PERSON} | g[DdsnNeE]
        | C(?:red|green|blue|reset | \({_ANY_WORD}\)) | w\({_ANY_WORD}\) | (?:<|>|>>|><)\|?\({_ANY_WORD}\)
        | \((?:trailers|decorate)(?::[^()%]*)?\)
    )""",
    re.VERBOSE,
)
_ATOMS = r"""
    HEAD|align|authordate|authoremail|authorname|author|body|color|committerdate|committeremail|committername|committer
    |contents|creatordate|creator|deltabase|else|end|if|numparent|objectname|objectsize|objecttype|parent|push|refname
    |subject|symref|then|tree|upstream|worktreepath
"""
_OF_REFS = re.compile(rf"%(?:%|[0-9A-Fa-f]{{2}}|\(\*?(?:{_ATOMS})(?::{_ANY_WORD})?\))", re.VERBOSE)


def runs_nothing(subcommand: str, text: str) -> bool:
    """Whether this value of `--format` or `--pretty` has no placeholder but known ones."""
    known = _OF_REFS if subcommand == "branch" else _OF_COMMITS
    return "%" not in known.sub("", text)
