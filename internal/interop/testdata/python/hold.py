"""A contender for one lock, driven by lines: hold.py CONNECT PATH NAME SESSION DIALECT

The lock is PATH/lock, the session's timeout SESSION seconds. DIALECT is kazoo, Kazoo's own shape, or curator: the
same recipe writing Curator's node names, so that Curator and Kazoo exclude
each other. Commands and answers, one line each:

  acquire MS   held | busy
  release      released
  rounds N     done N | overlap NAME
  quit         ends the session and the process

A round acquires, creates PATH/inside (which exists only while somebody is
inside, so finding it is an overlap), appends NAME to the data of PATH/turns
by an unconditional read, modify, write (so an update without exclusion gets
lost), removes PATH/inside and releases.
"""
import logging
import sys
import uuid

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout, NodeExistsError, NoNodeError
from kazoo.recipe.lock import Lock

ROUND = 60.0  # longest wait for a turn, seconds


class CuratorLock(Lock):
    """Kazoo's lock with the node names of Curator's InterProcessMutex."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]

    def __init__(self, client, path, identifier=None):
        super().__init__(client, path, identifier)
        self.prefix = "_c_%s%s" % (uuid.uuid4(), self._NODE_NAME)
        self.create_path = path + "/" + self.prefix


DIALECTS = {"kazoo": Lock, "curator": CuratorLock}


class Contender:
    def __init__(self, connect, path, name, session, dialect):
        self.path, self.name = path, name
        self.zk = KazooClient(hosts=connect, timeout=float(session))
        self.zk.start(timeout=60)
        self.zk.ensure_path(path + "/turns")
        self.lock = DIALECTS[dialect](self.zk, path + "/lock", name)

    def acquire(self, milliseconds):
        try:
            return "held" if self.lock.acquire(timeout=int(milliseconds) / 1000) else "busy"
        except LockTimeout:
            return "busy"

    def release(self):
        self.lock.release()
        return "released"

    def rounds(self, count):
        for _ in range(int(count)):
            self.lock.acquire(timeout=ROUND)
            try:
                self.zk.create(self.path + "/inside", self.name.encode())
            except NodeExistsError:
                return "overlap " + self._inside()
            turns, _ = self.zk.get(self.path + "/turns")
            self.zk.set(self.path + "/turns", (turns or b"") + (self.name + "\n").encode())
            self.zk.delete(self.path + "/inside")
            self.lock.release()
        return "done " + count

    def _inside(self):
        try:
            return self.zk.get(self.path + "/inside")[0].decode()
        except NoNodeError:
            return "(gone)"


def main():
    logging.disable(logging.CRITICAL)
    contender = Contender(*sys.argv[1:])
    print("ready", flush=True)
    commands = {"acquire": contender.acquire, "release": contender.release, "rounds": contender.rounds}
    for line in sys.stdin:
        command, *args = line.split()
        if command == "quit":
            break
        print(commands[command](*args), flush=True)
    contender.zk.stop()


if __name__ == "__main__":
    main()
