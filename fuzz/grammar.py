"""Shell texts by chance: commands, words, heredocs and compound commands, nested and with payloads in odd places.

Owns the grammar of the generator. The same `Random` gives the same texts. Half of them are *calm*: but for one odd
place they are made of what is usually allowed, so that something is left to run. Must not know the reader.
"""

from collections.abc import Callable
from random import Random

from fuzz import vocabulary as v

MAX_DEPTH = 3


class Generator:
    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._pick = chance.choice
        self._words: tuple[Callable[[int], str], ...] = (
            *[self._plain] * 6,
            *[self._single_quoted] * 3,
            *[self._double_quoted] * 3,
            *[self._expansion] * 2,
            *(self._ansi_c, self._escaped, self._joined, self._substitution, self._heredoc_substitution),
        )
        self._calm_words: tuple[Callable[[int], str], ...] = (
            *(self._known, self._known, self._single_quoted, self._single_quoted, self._quoted_payload, self._ansi_c),
            self._escaped,
        )

    def text(self) -> str:
        if self._often(0.55):
            return self._calm_statements(0)
        text = self._statements(0)
        if self._often(0.04):
            text = text.replace("\n", "\r\n")
        return text + self._pick(("", "", "", "\n", ";", " #c", "&", "\\", " "))

    def _often(self, share: float) -> bool:
        return self._chance.random() < share

    def _statements(self, depth: int) -> str:
        text = self._statement(depth)
        while self._often(0.35):
            text += self._pick(v.SEPARATORS[:13] if self._often(0.9) else v.SEPARATORS) + self._statement(depth)
        return text

    def _statement(self, depth: int) -> str:
        if depth < MAX_DEPTH and self._often(0.3):
            frame = self._pick(v.FRAMES)
            return frame.format(*(self._statements(depth + 1) if f"{{{n}}}" in frame else "" for n in range(3)))
        if self._often(0.12):
            return self._heredoc(depth)
        return self._simple(depth)

    def _simple(self, depth: int) -> str:
        parts = []
        while self._often(0.12):
            parts.append(self._pick(v.SETTINGS))
        while self._often(0.12):
            parts.append(self._pick(v.WRAPPERS))
        if self._often(0.06):
            parts.append(self._redirection())
        parts.append(self._pick(v.LOOKING) if self._often(0.95) else self._pick(v.RUNNING))
        while self._often(0.45):
            parts.append(self._word(depth))
        while self._often(0.12):
            parts.append(self._redirection())
        if self._often(0.05):
            parts.append("#" + self._pick(v.PAYLOADS))
        return (" " if self._often(0.95) else self._pick(("\t", "  ", " \\\n", "\\\n", "\u00a0"))).join(parts)

    def _redirection(self) -> str:
        return self._pick(v.REDIRECTIONS[:28] if self._often(0.8) else v.REDIRECTIONS)

    # Calm texts.

    def _calm_statements(self, depth: int) -> str:
        text = self._calm_statement(depth)
        while self._often(0.25):
            text += self._pick(v.SEPARATORS[:17]) + self._calm_statement(depth)
        return text

    def _calm_statement(self, depth: int) -> str:
        kind = self._chance.random()
        if depth < MAX_DEPTH and kind < 0.3:
            frame = self._pick(v.CALM_FRAMES if self._often(0.7) else v.ODD_FRAMES)
            return frame.format(*(self._calm_statements(depth + 1) if f"{{{n}}}" in frame else "" for n in range(3)))
        if kind < 0.45:
            return self._calm_heredoc()
        if kind < 0.55:
            return self._shell_with_settings()
        if kind < 0.62:
            return f"echo {self._word(depth)}"
        return self._loop() if kind < 0.67 else self._calm_command(depth)

    def _loop(self) -> str:
        words = " ".join(self._pick(v.LOOP_WORDS) for _ in range(self._chance.randint(1, 3)))
        body = "; ".join(self._pick(v.LOOP_BODIES) for _ in range(self._chance.randint(1, 3)))
        return f"for i in {words}; do {body}; done{self._pick(('', '', '; ls $i'))}"

    def _calm_command(self, depth: int) -> str:
        parts = [self._pick(v.LOOKING)]
        while self._often(0.4):
            parts.append(self._pick(self._calm_words)(depth))
        if self._often(0.15):
            parts.append(self._pick(v.REDIRECTIONS[:28]))
        if self._often(0.06):
            parts.append("#" + self._pick(v.PAYLOADS))
        return " ".join(parts)

    def _known(self, _: int) -> str:
        return self._pick(v.LITERALS[:13])

    def _quoted_payload(self, _: int) -> str:
        return '"' + "".join("\\" + sign if sign in '$`"\\' else sign for sign in self._payload()) + '"'

    def _shell_with_settings(self) -> str:
        wrapper = self._pick(v.WRAPPERS[:19]) + " " if self._often(0.3) else ""
        shell = self._pick(("bash -c", "sh -c", "bash -lc", "bash -euc", "dash -c", "bash -e -c", "/bin/bash -c"))
        return f"{self._pick(v.SETTINGS)} {wrapper}{shell} '{self._pick(v.SCRIPTS)}'"

    def _calm_heredoc(self) -> str:
        """A heredoc that expands nothing, alone or in a substitution, with lines that look like its end."""
        name = self._pick(("EOF", "E", "E.F", "_"))
        written = self._pick(("'{}'", "'{}'", '"{}"', "\\{}")).format(name)
        lines = [self._near(name) if self._often(0.5) else self._payload() for _ in range(self._chance.randint(0, 3))]
        here = "\n".join((f"cat {self._operator()}{written}", *lines, name))
        return self._pick(
            ('echo "$({}\n)"', 'echo "$({}\n)"', "echo $({}\n)", "{}\n", "{}", 'x="$({})"', "cat <({}\n)")
        ).replace("{}", here)

    # Words.

    def _word(self, depth: int) -> str:
        return self._pick(self._words)(depth)

    def _plain(self, _: int) -> str:
        return self._pick(v.LITERALS[:13] if self._often(0.6) else v.LITERALS)

    def _expansion(self, _: int) -> str:
        return self._pick(v.EXPANSIONS)

    def _payload(self) -> str:
        return self._pick(v.PAYLOADS) if self._often(0.7) else self._pick(v.LITERALS)

    def _single_quoted(self, _: int) -> str:
        return f"'{self._payload()}{self._payload() if self._often(0.2) else ''}'"

    def _double_quoted(self, depth: int) -> str:
        inner = ""
        while not inner or self._often(0.4):
            kind = self._chance.random()
            if kind < 0.35:
                inner += self._pick(v.LITERALS)
            elif kind < 0.6:
                inner += "".join("\\" + sign if sign in '$`"\\' else sign for sign in self._payload())
            elif kind < 0.7:
                inner += self._payload()
            elif kind < 0.85:
                inner += self._pick(v.EXPANSIONS)
            else:
                inner += self._heredoc_substitution(depth) if self._often(0.5) else self._substitution(depth)
        return f'"{inner}"'

    def _ansi_c(self, _: int) -> str:
        return "$'" + "".join(self._pick((*v.ESCAPES, "a", "b")) for _ in range(self._chance.randint(1, 4))) + "'"

    def _escaped(self, _: int) -> str:
        payload = self._payload()
        return "".join("\\" + sign if sign in " \t;|&()<>$`'\"\\#*?[{~!" else sign for sign in payload)

    def _joined(self, depth: int) -> str:
        return self._word(depth) + self._word(depth)

    def _substitution(self, depth: int) -> str:
        if depth >= MAX_DEPTH:
            return "$(ls)"
        return self._pick(("$({})", "$({})", "$( {} )", "`{}`", "<({})", ">({})", "$({}\n)")).format(
            self._statements(depth + 2)
        )

    # Heredocs.

    def _heredoc(self, depth: int) -> str:
        command = self._pick(("cat", "cat", "wc -l", "sort", "true", "bash", "head -1"))
        after = self._pick(("", "", "", " | wc -l", " && ls", "; ls", " >/dev/null", " #x", " <<F", " \\\n", " &", ")"))
        return f"{command} {self._operator()}{self._here(depth, after)}"

    def _heredoc_substitution(self, depth: int) -> str:
        """`$(cat <<'EOF' …)`, in which bash and the reader may disagree on the end."""
        if depth >= MAX_DEPTH:
            return "$(ls)"
        opening, closing = self._pick((("$(", ")"), ("$(", ")"), ("$(", ")"), ("`", "`"), ("<(", ")"), ("$( ", "\n)")))
        return f"{opening}cat {self._operator()}{self._here(depth, '')}{closing}"

    def _operator(self) -> str:
        return self._pick(("<<", "<<", "<<", "<<-", "<< ", "<<- ", "0<<", "<<\t"))

    def _here(self, depth: int, after: str) -> str:
        written = self._pick(v.DELIMITERS[:8] if self._often(0.75) else v.DELIMITERS)
        delimiter = written.replace("'", "").replace('"', "").replace("\\", "")
        lines = [self._here_line(delimiter, depth) for _ in range(self._chance.randint(0, 3))]
        end = delimiter if self._often(0.85) else self._near(delimiter)
        return "\n".join((written + after, *lines, end)) + self._pick(("\n", "\n", "\n", "", "\n\n", " \n"))

    def _here_line(self, delimiter: str, depth: int) -> str:
        kind = self._chance.random()
        if kind < 0.25:
            return self._pick(v.LITERALS)
        if kind < 0.5:
            return self._payload()
        if kind < 0.65:
            return self._pick(v.EXPANSIONS)
        if kind < 0.72 and depth < MAX_DEPTH:
            return self._statements(depth + 2)
        return self._near(delimiter)

    def _near(self, delimiter: str) -> str:
        """A line that looks like the end of a heredoc."""
        before = self._pick(("", "", "", "", "", "\t", " ", "\\", "x", "'", "$"))
        closings = (")", ")", ")", ")", ") ", ";)", " )")
        after = self._pick((*closings, " ", ";", "\\", "\r", "\t", "'", '"', "`", "\\\n", "#"))
        return before + delimiter + after + self._pick(("", self._payload(), "$(touch p)", "touch p)"))
