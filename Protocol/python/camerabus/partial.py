# SPDX-License-Identifier: Apache-2.0
"""A file that is made bit by bit, perhaps by several processes one after the other, and gets its name when it is whole.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from .closing import Closing

NAME_MAX = 255
#: What link(2) fails with where there are no links: on FAT, SMB and much of FUSE.
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


def place(path: str, overwrites: bool) -> str:
    """Where a new file goes: where a link leads that is to be overwritten. Raises `OSError` for what can't be written
    there, so that this isn't told after all has come.
    """
    try:
        os.lstat(path)
    except FileNotFoundError:
        return path
    if not overwrites:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    try:
        target = os.path.realpath(path, strict=True)
        mode = os.stat(target).st_mode
    except OSError:
        return path  # a link that leads nowhere
    if not stat.S_ISREG(mode):
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(code, os.strerror(code), path)
    return target


class Partial(Closing):
    """A file that is named `NAME.MARK.part` until it is complete. It stays when its process ends; the next attempt
    continues at its end.
    """

    def __init__(self, path: str, mark: str) -> None:
        self.path = path
        folder, name = os.path.split(path)
        end = f".{mark}.part"
        while len(os.fsencode(name)) > NAME_MAX - len(end):
            name = name[:-1]
        self.temporary = os.path.join(folder, name + end)
        #: Bytes that it has.
        self.count = 0
        self._file = -1

    def open(self, maximum: int) -> None:
        """One with more bytes than that is begun anew. Raises `BlockingIOError` while another process makes it."""
        # Nothing that lies there may hold this process up, or lead elsewhere.
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._file = os.open(self.temporary, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            self._file = os.open(self.temporary, flags)
            status = os.fstat(self._file)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self.temporary) from None
            # What others wrote there would become the beginning of this file.
            if status.st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), self.temporary) from None
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        status = os.fstat(self._file)
        # It may have got its name since it was opened.
        if not os.path.exists(self.temporary) or not os.path.samestat(status, os.lstat(self.temporary)):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), self.temporary)
        if status.st_size > maximum:
            os.truncate(self._file, 0)
        else:
            self.count = status.st_size

    def add(self, data: memoryview, offset: int) -> bool:
        """Adds bytes that belong there, as far as they aren't in it. False: what is in it there are other bytes."""
        known = data[: max(0, self.count - offset)]
        if os.pread(self._file, len(known), offset) != known:
            return False
        rest = data[len(known) :]
        while rest:
            written = os.write(self._file, rest)
            self.count += written
            rest = rest[written:]
        return True

    def publish(self, overwrites: bool) -> None:
        """Gives it its name: all of it and its name are on the disk then. Raises `FileExistsError` where there is one
        that isn't to be overwritten.
        """
        os.fsync(self._file)
        if overwrites:
            os.replace(self.temporary, self.path)
        else:
            self._name()
        folder = os.open(os.path.dirname(self.path) or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        except OSError as error:
            if error.errno != errno.EINVAL:  # SMB does so for every folder
                raise
        finally:
            os.close(folder)

    def _name(self) -> None:
        try:
            os.link(self.temporary, self.path)  # which, unlike a rename, takes no other's place
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
        else:
            os.unlink(self.temporary)
            return
        # The place is taken first, which only one can do.
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        try:
            os.replace(self.temporary, self.path)
        except BaseException:
            os.unlink(self.path)
            raise

    def discard(self) -> None:
        """Nobody is to go on with it."""
        os.unlink(self.temporary)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
