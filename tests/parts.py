"""System parts that some tests need: installed where that may be done, else named by the skipped tests.

Run by `make test` before pytest. Tests say what they need with `pytest.mark.skipif(missing("rg"), reason=how("rg"))`.
"""

import os
import shutil
import subprocess
import sys

PACKAGES = {
    "rg": "ripgrep",
    "bwrap": "bubblewrap",
    "git": "git",
    "openssl": "openssl",
    "bash": "bash",
    "tmux": "tmux",
    "chromium": "chromium",
    "chromium-headless-shell": "chromium-headless-shell",  # without it, tests of the page take twice the CPU time
    "firefox-esr": "firefox-esr",
    "nginx": "nginx-light",
    "npm": "npm",
    "pgbouncer": "pgbouncer",
    "faketime": "faketime",
    "tree": "tree",
    "gawk": "gawk",
}


def where(command: str) -> str | None:
    """Also where only administrators look."""
    return shutil.which(command) or shutil.which(command, path="/usr/sbin:/sbin")


def missing(command: str) -> bool:
    return where(command) is None


def how(command: str) -> str:
    """What to do for the tests that need it."""
    return f"needs {PACKAGES[command]}: apt install {PACKAGES[command]}"


def main() -> None:
    wanted = [package for command, package in PACKAGES.items() if missing(command)]
    if not wanted:
        return
    if os.geteuid() != 0 or missing("apt-get"):
        print(f"==> Some tests will be skipped or slower. Better: apt install {' '.join(wanted)}", flush=True)
        return
    print(f"==> Installing what some tests need: {' '.join(wanted)}", flush=True)
    _apt("update", "-q")
    if not _install(*wanted):  # not every system has every package
        for package in wanted:
            if not _install(package):
                print(
                    f"==> {package} cannot be installed: the tests that need it are skipped.",
                    file=sys.stderr,
                    flush=True,
                )


def _install(*packages: str) -> bool:
    return _apt("install", "-q", "-y", "--no-install-recommends", *packages)


def _apt(*command: str) -> bool:
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(["apt-get", *command], env=environ, stdout=subprocess.DEVNULL, check=False).returncode == 0


if __name__ == "__main__":
    main()
