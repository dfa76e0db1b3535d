"""Permission rules for the built-in tools, as the server reads them."""

from collections.abc import Iterable

from longboat.permissions import verdict
from longboat.permissions.verdict import Rule, Rules
from longboat.tools.registry import built_in_traits


def rules_for(*, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> Rules:
    return Rules.parse(tools=built_in_traits(), allow=allow, deny=deny)


def parse_rules(rules: Iterable[str]) -> tuple[Rule, ...]:
    return verdict.parse_rules(rules, built_in_traits())


def parse_rule(rule: str) -> Rule:
    return verdict.parse_rule(rule, built_in_traits())
