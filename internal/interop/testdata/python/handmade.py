"""A contender by a lock written by hand: handmade.py CONNECT PATH NAME SESSION KIND

Kazoo is only the client. The lock is PATH/lock, the session's timeout SESSION
seconds. KIND is page, the lock of the recipes' page, with a GUID in front of
its names; or node, one node at a fixed path, which whoever makes it holds.
Commands and answers, one line each:

  turn N       noted | again | overlap ENTRY
  quit         ends the session and the process

A turn acquires, creates the ephemeral node PATH/inside (finding it is an
overlap), appends the entry NAME-N to the data of PATH/turns by an unconditional read,
modify, write (so an update without exclusion gets lost), removes PATH/inside
and releases. Where the connection or the session fails under it, it begins a
new session and answers "again": the entry may be noted or not.
"""
import logging
import sys
import threading
import uuid

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, NodeExistsError, NoNodeError, SessionExpiredError
from kazoo.retry import KazooRetry

TURN = 60.0  # longest wait for a turn, seconds
FAILED = (ConnectionLoss, ConnectionClosedError, SessionExpiredError)


class Page:
    """The lock of the recipes' page. A claim is found again by its GUID."""

    def __init__(self, zk, path):
        self.zk, self.dir = zk, path
        self.zk.retry(self.zk.ensure_path, path)

    def acquire(self):
        guid = uuid.uuid4().hex
        self.node = self.zk.retry(self._join, guid)
        while True:
            line = sorted(self.zk.retry(self.zk.get_children, self.dir), key=lambda name: name[-10:])
            if self.node not in line:
                raise SessionExpiredError()
            place = line.index(self.node)
            if place == 0:
                return
            await_gone(self.zk, self.dir + "/" + line[place - 1])

    def _join(self, guid):
        for name in self.zk.get_children(self.dir):
            if name.startswith(guid):
                return name
        made = self.zk.create(self.dir + "/" + guid + "-lock-", b"", ephemeral=True, sequence=True)
        return made.rpartition("/")[2]

    def release(self):
        try:
            self.zk.retry(self.zk.delete, self.dir + "/" + self.node)
        except NoNodeError:
            pass  # an earlier request was carried out


class Node:
    """One node at a fixed path."""

    def __init__(self, zk, path):
        self.zk, self.path = zk, path

    def acquire(self):
        while not self.zk.retry(self._make):
            await_gone(self.zk, self.path)

    def _make(self):
        try:
            self.zk.create(self.path, b"", ephemeral=True)
            return True
        except NodeExistsError:
            return self._ours()  # by a request whose reply was lost

    def _ours(self):
        there, session = self.zk.exists(self.path), self.zk.client_id
        if session is None:
            raise ConnectionLoss()
        return there is not None and there.ephemeralOwner == session[0]

    def release(self):
        self.zk.retry(lambda: self._ours() and self.zk.delete(self.path))


def await_gone(zk, node):
    """Waits until the node is gone, or something else is to be looked at again."""
    changed = threading.Event()
    if zk.retry(zk.exists, node, watch=lambda event: changed.set()) and not changed.wait(TURN):
        raise AssertionError("no turn within a minute")


class Contender:
    def __init__(self, connect, path, name, session, kind):
        self.connect, self.path, self.name, self.session, self.kind = connect, path, name, float(session), kind
        self.begin()

    def begin(self):
        self.zk = KazooClient(
            hosts=self.connect,
            timeout=self.session,
            command_retry=KazooRetry(max_tries=-1, delay=0.02, max_delay=0.5, ignore_expire=False),
        )
        self.zk.start(timeout=60)
        self.zk.retry(self.zk.ensure_path, self.path + "/turns")
        self.lock = {"page": Page, "node": Node}[self.kind](self.zk, self.path + "/lock")

    def turn(self, number):
        try:
            return self._turn(self.name + "-" + number)
        except FAILED:
            try:
                self.zk.retry(self.zk.exists, "/")  # the end of a session takes a connection
            except FAILED:
                pass
            self.zk.stop()
            self.begin()
            return "again"

    def _turn(self, entry):
        self.lock.acquire()
        try:
            self.zk.create(self.path + "/inside", entry.encode(), ephemeral=True)
        except NodeExistsError:
            return "overlap " + self.zk.get(self.path + "/inside")[0].decode()
        turns, _ = self.zk.get(self.path + "/turns")
        self.zk.set(self.path + "/turns", (turns or b"") + (entry + "\n").encode())
        self.zk.delete(self.path + "/inside")
        self.lock.release()
        return "noted"


def main():
    logging.disable(logging.CRITICAL)
    contender = Contender(*sys.argv[1:])
    print("ready", flush=True)
    for line in sys.stdin:
        command, *args = line.split()
        if command == "quit":
            break
        print(getattr(contender, command)(*args), flush=True)
    contender.zk.stop()


if __name__ == "__main__":
    main()
