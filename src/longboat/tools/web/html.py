"""HTML as text that a model can read. Knows no network.

html-to-markdown does the work. Of the libraries tried it alone takes a page nested 100,000 deep in a fraction of a
second (markdownify exceeds the recursion limit, selectolax needs half a minute); it leaves out scripts, navigation and
forms; and it is MIT (html2text is GPL).
"""

import re
from typing import Literal

_BLANK_LINES = re.compile(r"\n\s*\n\s*\n")


def readable(html: str, *, url: str, style: Literal["markdown", "text"]) -> str:
    """The page's content; links are made absolute by `url`. Takes a while for long pages: call it off the loop."""
    from html_to_markdown import ConversionOptions, InlineDataMedia, OutputFormat, convert

    options = ConversionOptions(
        output_format=OutputFormat.MARKDOWN if style == "markdown" else OutputFormat.PLAIN,
        extract_metadata=False,
        skip_images=True,
        inline_data_media=InlineDataMedia.DROP_ELEMENT,
        base_url=url,
    )
    return _BLANK_LINES.sub("\n\n", convert(html, options).content or "").strip()
