"""What may be quoted of a provider's words."""

from longboat.models.error_quotes import quote_error, secrets_of, with_advice

KEY = "sk-0123456789abcdef"


def test_a_secret_is_hidden_before_the_text_is_cut_so_that_no_half_of_it_is_left() -> None:
    for at in range(40):
        said = quote_error("." * at + KEY + " is wrong", (KEY,), limit=30)
        assert "sk-0" not in said
        assert len(said) <= 30


def test_key_headers_and_what_a_url_carries_are_secrets_and_the_longest_goes_first() -> None:
    headers = {"X-Team": "the-team", "Authorization": f"Bearer {KEY}"}
    found = secrets_of(f"{KEY}-longer\n", headers, "http://me:p%40ss-word@here/v1?key=query-key")
    expected = {f"{KEY}-longer", KEY, f"Bearer {KEY}", "the-team", "p%40ss-word", "p@ss-word", "query-key"}
    assert set(found) == expected
    assert list(found) == sorted(found, key=len, reverse=True)
    assert quote_error(f"{KEY}-longer or {KEY}", found, limit=100) == "*** or ***"


def test_a_short_key_is_hidden_where_it_is_quoted_and_garbles_nothing_else() -> None:
    said = "Incorrect API key provided: x1. You sent 'x1' in api_key=x1; x1 is no model, nor is x10 or: x1-large"
    hidden = "Incorrect API key provided: ***. You sent '***' in api_key=***; x1 is no model, nor is x10 or: x1-large"
    assert quote_error(said, secrets_of("x1", {}, None), limit=200) == hidden


def test_without_secrets_nothing_is_hidden() -> None:
    assert secrets_of(None, {}, "http://[broken") == ()
    assert secrets_of("", {"X-Empty": " "}, None) == ()


def test_advice_begins_a_sentence_of_its_own() -> None:
    assert with_advice("bad key", "Check it.") == "bad key. Check it."
    assert with_advice("Bad key!", "Check it.") == "Bad key! Check it."
    assert with_advice("bad key", "") == "bad key"
