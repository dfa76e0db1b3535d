"""Who may call over TCP (http.md, first section): pure decisions over headers and addresses."""

import pytest

from longboat.errors import ForeignHost, ForeignOrigin, Unauthorized
from longboat.server.auth import Authority, Policy

TOKEN = "s3cret-tøken"
POLICY = Policy(token=TOKEN, listen_host="127.0.0.1", allowed_hosts=("box.example.com", "proxy.example.com:8443"))
LOOPBACK = ("127.0.0.1", 4096)


def check(*headers: tuple[str, str], policy: Policy = POLICY, local=LOOPBACK, path: str = "/v1/workspaces") -> None:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    policy.check(local=local, path=path, headers=raw)


def bearer(token: str = TOKEN) -> tuple[str, str]:
    return ("Authorization", f"Bearer {token}")


@pytest.mark.parametrize("host", ["127.0.0.1:4096", "localhost:4096", "[::1]:4096", "LOCALHOST", "localhost:9999"])
def test_a_loopback_listener_answers_to_every_name_of_loopback_at_any_forwarded_port(host):
    check(("Host", host), bearer())


@pytest.mark.parametrize("host", ["box.example.com", "Box.Example.COM.:443", "proxy.example.com:8443"])
def test_allowed_hosts_are_answered_to_whatever_their_case(host):
    check(("Host", host), bearer())


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.com",
        "evil.example.com:4096",
        "localhost.evil.example.com",
        "127.0.0.1.evil.example.com",
        "127.0.0.1@evil.example.com",
        "evil.example.com#127.0.0.1",
        "proxy.example.com:9000",
        "192.168.1.5:4096",
        "localhost:abc",
        "[::1",
        " localhost",
        "",
    ],
)
def test_a_foreign_or_malformed_host_is_refused_even_with_the_token(host):
    with pytest.raises(ForeignHost):
        check(("Host", host), bearer())


def test_no_host_and_two_hosts_are_refused():
    with pytest.raises(ForeignHost):
        check(bearer())
    with pytest.raises(ForeignHost):
        check(("Host", "localhost"), ("Host", "localhost"), bearer())


def test_a_listener_on_every_address_answers_to_the_address_that_was_called():
    policy = Policy(token=TOKEN, listen_host="0.0.0.0")
    check(("Host", "192.168.1.5:4096"), bearer(), policy=policy, local=("192.168.1.5", 4096))
    check(("Host", "[fe80::1]:4096"), bearer(), policy=policy, local=("fe80::1%eth0", 4096))
    check(("Host", "127.0.0.1:4096"), bearer(), policy=policy, local=("::ffff:127.0.0.1", 4096))
    with pytest.raises(ForeignHost):
        check(("Host", "localhost:4096"), bearer(), policy=policy, local=("192.168.1.5", 4096))


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:4096", "http://localhost:4096"),
        ("localhost:4096", "https://localhost:4096"),
        ("box.example.com", "https://box.example.com"),
        ("box.example.com:443", "https://box.example.com"),
        ("Box.Example.com.:8443", "https://box.example.com:8443"),
        ("proxy.example.com:8443", "https://proxy.example.com:8443"),
        ("localhost:4096", "https://proxy.example.com:8443"),
    ],
)
def test_a_page_of_the_very_host_that_was_called_may_call_and_one_of_an_allowed_name_and_port(host, origin):
    check(("Host", host), ("Origin", origin), bearer())


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("box.example.com", "https://box.example.com:3000"),
        ("box.example.com:8443", "https://box.example.com"),
        ("box.example.com:4096", "http://box.example.com"),
        ("box.example.com:4096", "http://box.example.com:3000"),
        ("localhost:4096", "https://box.example.com"),
        ("localhost:4096", "https://proxy.example.com"),
        ("localhost:4096", "https://proxy.example.com:9000"),
    ],
)
def test_a_page_of_another_port_of_an_allowed_name_is_refused(host, origin):
    """Another port is another program: what it serves is not the server's page."""
    with pytest.raises(ForeignOrigin):
        check(("Host", host), ("Origin", origin), bearer())


def test_behind_a_proxy_with_tls_a_page_without_it_is_another_origin():
    """The Host has no port then: which one was called, the proxy tells."""
    https = ("X-Forwarded-Proto", "https")
    check(("Host", "box.example.com"), https, ("Origin", "https://box.example.com"), bearer())
    for origin in ("http://box.example.com", "https://box.example.com:80", "http://box.example.com:443"):
        with pytest.raises(ForeignOrigin):
            check(("Host", "box.example.com"), https, ("Origin", origin), bearer())
    check(("Host", "box.example.com"), ("Origin", "http://box.example.com"), bearer())


def test_a_name_that_is_allowed_at_the_port_of_its_scheme_is_known_without_the_port():
    policy = Policy(token=TOKEN, listen_host="127.0.0.1", allowed_hosts=("box.example.com:443",))
    check(("Host", "box.example.com"), ("Origin", "https://box.example.com"), bearer(), policy=policy)
    check(("Host", "127.0.0.1:4096"), ("Origin", "https://box.example.com"), bearer(), policy=policy)
    with pytest.raises(ForeignOrigin):
        check(("Host", "127.0.0.1:4096"), ("Origin", "http://box.example.com"), bearer(), policy=policy)
    with pytest.raises(ForeignHost):
        check(("Host", "box.example.com:8443"), bearer(), policy=policy)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example.com",
        "http://localhost:3000",
        "http://localhost",
        "http://127.0.0.1:4096",
        "null",
        "",
        "file://localhost:4096",
        "localhost:4096",
        "http://localhost:4096@evil.example.com",
    ],
)
def test_a_page_from_elsewhere_is_refused_even_with_the_token_and_another_port_is_elsewhere(origin):
    with pytest.raises(ForeignOrigin):
        check(("Host", "localhost:4096"), ("Origin", origin), bearer())


def test_what_another_page_makes_a_browser_ask_for_is_refused_also_without_an_origin():
    """A picture on a page of another port: the browser sends the cookie along, and no Origin."""
    for site in ("cross-site", "same-site", "nonsense"):
        with pytest.raises(ForeignOrigin):
            check(("Host", "localhost:4096"), ("Sec-Fetch-Site", site), bearer())
        check(("Host", "localhost:4096"), ("Sec-Fetch-Site", site), bearer(), path="/")
        check(("Host", "localhost:4096"), ("Sec-Fetch-Site", site), path="/login")
    for site in ("same-origin", "none"):
        check(("Host", "localhost:4096"), ("Sec-Fetch-Site", site), bearer())


def test_a_second_origin_does_not_hide_behind_the_first():
    with pytest.raises(ForeignOrigin):
        check(("Host", "localhost"), ("Origin", "http://localhost"), ("Origin", "http://evil"), bearer())


def test_loopback_is_never_trusted_by_itself():
    with pytest.raises(Unauthorized):
        check(("Host", "localhost:4096"))


@pytest.mark.parametrize(
    "header",
    [
        ("Authorization", "Bearer wrong"),
        ("Authorization", "Bearer "),
        ("Authorization", "Bearer"),
        ("Authorization", f"Basic {TOKEN}"),
        ("Authorization", TOKEN),
        ("Authorization", f"Bearer {TOKEN}x"),
        ("Authorization", f"Bearer {TOKEN[:-1]}"),
        ("X-Longboat-Token", TOKEN),
        ("Cookie", f"longboat_4096={TOKEN}"),
        ("Cookie", "longboat_4096="),
        ("Cookie", "longboat_4096"),
    ],
)
def test_a_wrong_token_is_refused_wherever_it_stands(header):
    with pytest.raises(Unauthorized):
        check(("Host", "localhost"), header)


def test_the_scheme_of_the_bearer_token_may_be_written_in_any_case():
    check(("Host", "localhost"), ("Authorization", f"bearer  {TOKEN} "))


def test_the_cookie_from_login_is_as_good_as_the_token_among_whatever_other_cookies():
    pair = POLICY.cookie(local_port=4096).partition(";")[0]
    check(("Host", "localhost"), ("Cookie", f'theme={{"a":1}}; odd; {pair}; last=1'))


def test_the_cookie_does_not_carry_the_token_and_opens_only_the_server_that_set_it():
    cookie = POLICY.cookie(local_port=4096)
    assert TOKEN not in cookie
    assert cookie.endswith("; HttpOnly; SameSite=Lax; Path=/")
    pair = cookie.partition(";")[0]
    with pytest.raises(Unauthorized):
        check(("Host", "localhost"), ("Cookie", pair), policy=Policy(token="another"))
    with pytest.raises(Unauthorized):
        check(("Host", "localhost"), ("Cookie", pair), local=("127.0.0.1", 5000))


def test_g2_the_cookie_of_a_node_opens_the_other_nodes_of_its_cluster():
    ours, others = (Policy(token=TOKEN, listen_host="127.0.0.1", cluster=name) for name in ("ours", "theirs"))
    pair = ours.cookie(local_port=8911).partition(";")[0]
    check(("Host", "localhost"), ("Cookie", pair), policy=ours, local=("127.0.0.1", 8912))
    for policy in (others, POLICY):
        with pytest.raises(Unauthorized):
            check(("Host", "localhost"), ("Cookie", pair), policy=policy, local=("127.0.0.1", 8911))


@pytest.mark.parametrize(
    ("headers", "secure"),
    [
        ([("host", "box.example.com"), ("x-forwarded-proto", "https")], True),
        ([("host", "proxy.example.com:8443"), ("x-forwarded-proto", "https")], True),
        ([("host", "box.example.com"), ("x-forwarded-proto", "http")], False),
        ([("host", "box.example.com")], False),
        ([("host", "127.0.0.1:4096"), ("x-forwarded-proto", "https")], False),
        ([("host", "proxy.example.com:9000"), ("x-forwarded-proto", "https")], False),
        ([("host", "box.example.com"), ("x-forwarded-proto", "https"), ("x-forwarded-proto", "http")], False),
        ([("x-forwarded-proto", "https")], False),
    ],
)
def test_a_proxy_that_speaks_tls_is_believed_under_an_allowed_name_alone(headers, secure):
    assert POLICY.came_by_tls([(name.encode(), value.encode()) for name, value in headers]) is secure


def test_a_cookie_that_came_by_tls_goes_by_nothing_else():
    assert POLICY.cookie(local_port=4096, secure=True) == f"{POLICY.cookie(local_port=4096)}; Secure"


def test_a_wrong_bearer_token_is_not_helped_by_a_good_cookie():
    pair = POLICY.cookie(local_port=4096).partition(";")[0]
    with pytest.raises(Unauthorized):
        check(("Host", "localhost"), bearer("wrong"), ("Cookie", pair))


def test_an_empty_token_opens_nothing():
    policy = Policy(token="", listen_host="127.0.0.1")
    pair = policy.cookie(local_port=4096).partition(";")[0]
    assert not policy.is_token(b"")
    for header in (("Authorization", "Bearer "), ("Cookie", pair)):
        with pytest.raises(Unauthorized):
            check(("Host", "localhost"), header, policy=policy)


@pytest.mark.parametrize("path", ["/v1/health", "/v1/ready", "/login"])
def test_health_and_login_need_no_token_but_still_a_host_and_origin_of_ours(path):
    check(("Host", "localhost"), path=path)
    with pytest.raises(ForeignHost):
        check(("Host", "evil"), path=path)
    with pytest.raises(ForeignOrigin):
        check(("Host", "localhost"), ("Origin", "http://evil"), path=path)


@pytest.mark.parametrize(
    "path", ["/v1/health/", "/v1/ready/", "//v1/health", "/v1/healthz", "/v1/docs", "/", "/v1/../v1/health"]
)
def test_no_other_spelling_of_a_path_escapes_the_token(path):
    with pytest.raises(Unauthorized):
        check(("Host", "localhost"), path=path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost:80", Authority("localhost", 80)),
        ("[::0:1]:8", Authority("::1", 8)),
        ("Box.", Authority("box", None)),
        ("a/b", None),
        ("a b", None),
        ("a:99999", None),
        (":80", None),
    ],
)
def test_host_and_port_are_read_in_one_spelling(text, expected):
    assert Authority.parse(text) == expected
