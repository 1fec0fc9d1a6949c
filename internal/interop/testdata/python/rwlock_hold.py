"""A contender for one read/write lock, driven by lines: rwlock_hold.py CONNECT PATH NAME SESSION

The lock is PATH/lock, Kazoo's ReadLock and WriteLock. The commands, answers and rounds are those of
testdata/java/RwlockHold.java, but there is no downgrade, which Kazoo does not have.
"""
import logging
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout, NodeExistsError
from kazoo.recipe.lock import ReadLock
from kazoo.retry import ForceRetryError

ROUND = 60000  # longest wait for a turn, milliseconds


class MendedReadLock(ReadLock):
    """Kazoo's ReadLock without its issue 649.

    In Kazoo 2.8 a reader waits for later writers, too, which wait for the reader: two of Kazoo's own contenders are
    enough for a deadlock.
    """

    def _get_predecessor(self, node):
        children = self.client.get_children(self.path)
        if node not in children:
            raise ForceRetryError()
        ahead = [c for c in children if self._contenders_re.search(c) and c[-10:] < node[-10:]]
        return max(ahead, key=lambda c: c[-10:], default=None)


class Contender:
    def __init__(self, connect, path, name, session):
        self.path, self.name = path, name
        self.zk = KazooClient(hosts=connect, timeout=float(session))
        self.zk.start(timeout=60)
        self.zk.ensure_path(path + "/turns")
        self.zk.ensure_path(path + "/reading")
        self.sides = {
            "read": MendedReadLock(self.zk, path + "/lock", name),
            "write": self.zk.WriteLock(path + "/lock", name),
        }
        self.held = None

    def acquire(self, side, milliseconds):
        try:
            if not self.sides[side].acquire(timeout=int(milliseconds) / 1000):
                return "busy"
        except LockTimeout:
            return "busy"
        self.held = self.sides[side]
        return "held"

    def release(self):
        self.held.release()
        return "released"

    def rounds(self, count):
        for i in range(int(count)):
            for side in (["write"], ["read"], ["write", "read"])[i % 3]:
                if self.acquire(side, ROUND) == "busy":
                    raise RuntimeError("no turn within %d ms" % ROUND)
                overlap = self._write() if side == "write" else self._read()
                if overlap:
                    return "overlap " + overlap
                self.release()
        return "done " + count

    def _write(self):
        try:
            self.zk.create(self.path + "/writing", ephemeral=True)
        except NodeExistsError:
            return "writing"
        before = self.zk.get_children(self.path + "/reading")
        turns, _ = self.zk.get(self.path + "/turns")
        self.zk.set(self.path + "/turns", (turns or b"") + (self.name + "\n").encode())
        after = self.zk.get_children(self.path + "/reading")
        self.zk.delete(self.path + "/writing")
        return "reading" if before or after else ""

    def _read(self):
        reading = self.path + "/reading/" + self.name
        self.zk.create(reading, ephemeral=True)
        writing = self.zk.exists(self.path + "/writing")
        before, after = self.zk.exists(self.path + "/turns"), self.zk.exists(self.path + "/turns")
        self.zk.delete(reading)
        return "writing" if writing or before.version != after.version else ""


def main():
    logging.disable(logging.CRITICAL)
    contender = Contender(*sys.argv[1:])
    print("ready", flush=True)
    for line in sys.stdin:
        command, *args = line.split()
        if command == "quit":
            break
        if command in contender.sides:
            print(contender.acquire(command, *args), flush=True)
        else:
            print({"release": contender.release, "rounds": contender.rounds}[command](*args), flush=True)
    contender.zk.stop()


if __name__ == "__main__":
    main()
