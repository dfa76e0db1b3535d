"""Opening the user's own files: regular ones alone. A pipe in the place of one would hold up the reader, a device
would be read without end. Any room may use it; it knows none.
"""

import errno
import os
import stat


def opener(file: str, flags: int) -> int:
    """For `open(…, opener=opener)`. An OSError for anything else; a file that is made is its owner's alone."""
    descriptor = os.open(file, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no regular file", file)


def read(file: str | os.PathLike[str], most: int = -1) -> bytes:
    """All of it, or its beginning."""
    with open(file, "rb", opener=opener) as opened:
        return opened.read(most)
