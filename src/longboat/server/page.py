"""The web page: its files, and the headers that isolate it from other sites. Knows no runs or sessions.

The files are read once, by name, from the package: no part of a request ever becomes a path.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable

# Litestar adds the charset to text types.
_TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "png": "image/png",
    "webmanifest": "application/manifest+json",
}

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types longboat"
)
_SAFETY = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
HEADERS = {
    "content-security-policy": _POLICY,
    "referrer-policy": "no-referrer",
    # Always revalidated, mostly answered with 304: a new server version brings its new page at once.
    "cache-control": "no-cache",
    **_SAFETY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    body: bytes
    media_type: str
    etag: str

    def is_held(self, if_none_match: str) -> bool:
        """Whether the browser that sent this header already has the file."""
        held = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
        return self.etag in held or "*" in held


def asset(name: str) -> Asset | None:
    """A file of the page by its name, such as `js/app.js`."""
    return _assets().get(name)


@cache
def _assets() -> dict[str, Asset]:
    return dict(_find_assets(files("longboat") / "web", ""))


def _find_assets(directory: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for entry in directory.iterdir():
        if entry.is_dir():
            found += _find_assets(entry, f"{prefix}{entry.name}/")
        elif media_type := _TYPES.get(entry.name.rpartition(".")[2]):
            body = entry.read_bytes()
            etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            found.append((prefix + entry.name, Asset(body=body, media_type=media_type, etag=etag)))
    return found


# The login page. A single file without scripts: nothing else of the page is served without the token.

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { display: grid; place-content: center; min-height: 100vh; margin: 0; padding: 1rem; box-sizing: border-box;
  background: light-dark(#f6f7f9, #14171c); color: light-dark(#1b2330, #dfe5ee); }
main { max-width: 26rem; }
h1 { font-size: 1.25rem; margin: 0 0 .5rem; }
p { margin: .5rem 0; }
label { display: block; margin-top: 1rem; font-weight: 600; }
input, button { font: inherit; padding: .5rem .75rem; border-radius: .375rem; border: 1px solid #8899aa; width: 100%;
  box-sizing: border-box; min-height: 44px; }
button { margin-top: .75rem; background: #1f5fbf; border-color: #1f5fbf; color: #fff; font-weight: 600; }
:focus-visible { outline: 3px solid #5b9dff; outline-offset: 2px; }
code { font: .9em ui-monospace, monospace; }
.wrong { color: light-dark(#b3261e, #ff9a90); font-weight: 600; }
""".strip()
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

LOGIN_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    # With no-referrer, browsers send the form with `Origin: null`, which is refused.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "www-authenticate": "Bearer",
    **_SAFETY,
}


def login_page(wrong: str = "") -> str:
    """Ask for the token. `wrong` says why the last one was refused."""
    message = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(wrong))
    told = f'<p class="wrong" role="alert">{message}</p>' if wrong else ""
    # Inline: without an icon, browsers request /favicon.ico, which the policy forbids.
    icon = base64.b64encode(_assets()["icon.svg"].body).decode()
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Log in · Longboat</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">'
        f"<style>{_STYLE}</style></head><body><main><h1>Longboat</h1>"
        f"<p>Enter the access token. To skip this, run <code>longboat web</code> on the server.</p>{told}"
        '<form method="post" action="/login"><label for="token">Token</label>'
        '<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>'
        "<button>Log in</button></form></main></body></html>"
    )
