"""Kazoo's side of a recipe that it shares with others, driven by lines: peer.py CONNECT PATH NAME SESSION RECIPE [N]

The recipe is at PATH/shared, the session's timeout SESSION seconds. Commands
and answers, one line each:

  RECIPE semaphore: Semaphore with N leases
    acquire MS   held | busy | disagree
    release      released
    rounds N     done N | overlap K
  RECIPE election: Election
    stand        standing
    await MS     held | busy
    contenders   the identifiers in line, with commas
    leader       the first of them
    release      released
  RECIPE barrier: Barrier
    set          set
    remove       removed
    wait MS      open | closed
  quit           ends the session and the process

A round acquires a lease, creates an ephemeral node in PATH/inside, counts
those there are, deletes it, and releases. More than N are an overlap.
"""
import logging
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

ROUND = 60.0  # longest wait for a lease, seconds


class Peer:
    def __init__(self, connect, path, name, session, recipe, count="0"):
        self.path, self.name, self.count = path, name, int(count)
        self.zk = KazooClient(hosts=connect, timeout=float(session))
        self.zk.start(timeout=60)
        self.zk.ensure_path(path + "/inside")
        shared = path + "/shared"
        if recipe == "semaphore":
            self.semaphore = self.zk.Semaphore(shared, name, max_leases=self.count)
        self.election = self.zk.Election(shared, name)
        self.barrier = self.zk.Barrier(shared)
        self.leading, self.resign, self.term = threading.Event(), threading.Event(), None

    def acquire(self, milliseconds):
        try:
            return "held" if self.semaphore.acquire(timeout=int(milliseconds) / 1000) else "busy"
        except LockTimeout:
            return "busy"
        except ValueError:
            return "disagree"

    def rounds(self, count):
        for i in range(int(count)):
            self.semaphore.acquire(timeout=ROUND)
            node = "%s/inside/%s-%d" % (self.path, self.name, i)
            self.zk.create(node, ephemeral=True)
            inside = len(self.zk.get_children(self.path + "/inside"))
            self.zk.delete(node)
            self.semaphore.release()
            if inside > self.count:
                return "overlap %d" % inside
        return "done " + count

    def stand(self):
        def lead():
            self.leading.set()
            self.resign.wait()

        self.leading.clear()
        self.resign.clear()
        self.term = threading.Thread(target=self.election.run, args=(lead,), daemon=True)
        self.term.start()
        return "standing"

    def wait_to_lead(self, milliseconds):
        return "held" if self.leading.wait(int(milliseconds) / 1000) else "busy"

    def contenders(self):
        return ",".join(self.election.contenders())

    def leader(self):
        return self.election.contenders()[0]

    def release(self):
        if self.term is None:
            self.semaphore.release()
        else:
            self.resign.set()
            self.term.join()
            self.term = None
        return "released"

    def set(self):
        self.barrier.create()
        return "set"

    def remove(self):
        self.barrier.remove()
        return "removed"

    def wait(self, milliseconds):
        return "open" if self.barrier.wait(int(milliseconds) / 1000) else "closed"


def main():
    logging.disable(logging.CRITICAL)
    peer = Peer(*sys.argv[1:])
    print("ready", flush=True)
    commands = {
        "acquire": peer.acquire, "rounds": peer.rounds, "release": peer.release,
        "stand": peer.stand, "await": peer.wait_to_lead, "contenders": peer.contenders,
        "leader": peer.leader,
        "set": peer.set, "remove": peer.remove, "wait": peer.wait,
    }
    for line in sys.stdin:
        command, *args = line.split()
        if command == "quit":
            break
        print(commands[command](*args), flush=True)
    peer.zk.stop()


if __name__ == "__main__":
    main()
