"""The files that hold the full output of long commands, for all workspaces of a server, and their limits on disk.

A workspace has its own directory for them, its scratch directory; all of these are in one directory. When space runs
out, the oldest files of ended commands are replaced by a note that says what to do. A running command keeps its file,
which then stops growing. Must not know processes.
"""

import os
from pathlib import Path

MEGABYTE = 1024 * 1024
FILES_KEPT = 50
"""Files of one workspace that are kept, whatever their size."""
_BLOCK = 4096
"""What a file takes on disk at the least: its last block counts in full."""
_RERUN = "if you need it, run the command again and redirect its output to a file (`… > FILE`)"
NOTE = f"[This output was deleted to make room for later commands; {_RERUN}.]\n"
WAS_REMOVED = f"; the full output was deleted to make room; {_RERUN}"


class OutputFile:
    """The output of one command. `is_finished` when the command has ended."""

    def __init__(self, path: Path, files: "OutputFiles", *, fd: int | None) -> None:
        self.path = path
        self.size = 0
        """Bytes that it takes on disk."""
        self.length = 0
        """Bytes that were written to it."""
        self.is_finished = fd is None
        self.is_dropped = False
        self._files = files
        self._fd = fd
        self.measure()

    def write(self, data: bytes) -> bool:
        """Whether there was room for all of it: what fits is written. Raises OSError."""
        if self._fd is None:
            return False
        end = _whole_characters(data, self._files.make_room(self, len(data)))
        left = memoryview(data)[:end]
        while left:
            left = left[os.write(self._fd, left) :]
        self.length += end
        self.measure()
        return end == len(data)

    def close(self) -> None:
        """Nothing more is written."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def finish(self) -> None:
        """The command has ended: from now on the file may make way for others."""
        self.close()
        self.is_finished = True

    def drop(self) -> None:
        """Replace it with a note; delete it if the note would not be smaller."""
        self.is_dropped = True
        try:
            if self.size > _BLOCK:
                self.path.write_text(NOTE, encoding="utf-8")
            else:
                self.path.unlink(missing_ok=True)
        except OSError:
            pass  # what is really there is measured next
        self.measure()

    def measure(self) -> None:
        try:
            status = os.stat(self.path if self._fd is None else self._fd)
        except OSError:
            self.size = 0  # someone has removed it
        else:
            self.size = max(status.st_blocks * 512, status.st_size)


class OutputFiles:
    """`limit` and `workspace_limit` are bytes: for all scratch directories in `directory`, and for each of them."""

    def __init__(self, directory: Path, *, limit: int, workspace_limit: int) -> None:
        self._directory = directory
        self._limit = limit
        self._workspace_limit = workspace_limit
        self._files: list[OutputFile] | None = None
        """Oldest first."""

    def open(self, scratch: Path, name: str) -> OutputFile:
        """A new file in the scratch directory of a workspace. Raises OSError."""
        scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = self._list_files()
        finished = [file for file in known if file.is_finished and file.path.parent == scratch]
        for old in finished[: max(0, len(finished) - FILES_KEPT + 1)]:
            old.is_dropped = True
            old.path.unlink(missing_ok=True)
            known.remove(old)
        path = scratch / name
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        known.append(OutputFile(path, self, fd=fd))
        return known[-1]

    def forget(self, scratch: Path) -> None:
        """The workspace has closed, and its files are gone."""
        if self._files is not None:
            self._files = [file for file in self._files if file.path.parent != scratch]

    def make_room(self, file: OutputFile, wanted: int) -> int:
        """How much may be added to a file, after others have made way for it: `wanted` if possible."""
        everything = self._list_files()
        own = [each for each in everything if each.path.parent == file.path.parent]
        for files, limit in ((own, self._workspace_limit), (everything, self._limit)):
            for old in files:
                if _room(files, limit) >= wanted:
                    break
                if old.is_finished and not old.is_dropped:
                    old.drop()
        room = min(_room(own, self._workspace_limit), _room(everything, self._limit))
        return max(0, min(wanted, room))

    def _list_files(self) -> list[OutputFile]:
        """With what an earlier server left behind."""
        if self._files is None:
            paths = [path for path in self._directory.glob("*/job-*.txt") if path.is_file() and not path.is_symlink()]
            self._files = [OutputFile(path, self, fd=None) for path in sorted(paths, key=_changed_at)]
        return self._files


def _whole_characters(data: bytes, end: int) -> int:
    """Where to cut UTF-8 so that no character is cut."""
    while 0 < end < len(data) and data[end] & 0xC0 == 0x80:
        end -= 1
    return end


def _room(files: list[OutputFile], limit: int) -> int:
    return limit - sum(file.size for file in files) - _BLOCK


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
