"""Kazoo's side of what is shared without a lock, driven by lines: shared_peer.py CONNECT PATH NAME SESSION

Commands and answers, one line each; the recipes are at PATH/members, PATH/digits
and PATH/curator:

  join DATA      joined, with a Party
  members        the data of all members, with commas
  leave          left
  count          the number of a Counter
  add N          the sum
  addcurator N   the sum, of a Counter with support_curator
  quit           ends the session and the process
"""
import logging
import sys

from kazoo.client import KazooClient


class Peer:
    def __init__(self, connect, path, name, session):
        self.path = path
        self.zk = KazooClient(hosts=connect, timeout=float(session))
        self.zk.start(timeout=60)
        self.party = None

    def join(self, data):
        self.party = self.zk.Party(self.path + "/members", data)
        self.party.join()
        return "joined"

    def members(self):
        return ",".join(sorted(self.party))

    def leave(self):
        self.party.leave()
        return "left"

    def count(self):
        return str(self.zk.Counter(self.path + "/digits").value)

    def add(self, delta):
        counter = self.zk.Counter(self.path + "/digits")
        counter += int(delta)
        return str(counter.post_value)

    def add_curator(self, delta):
        counter = self.zk.Counter(self.path + "/curator", support_curator=True)
        counter += int(delta)
        return str(counter.post_value)


def main():
    logging.disable(logging.CRITICAL)
    peer = Peer(*sys.argv[1:])
    print("ready", flush=True)
    commands = {
        "join": peer.join, "members": peer.members, "leave": peer.leave,
        "count": peer.count, "add": peer.add, "addcurator": peer.add_curator,
    }
    for line in sys.stdin:
        command, *args = line.split()
        if command == "quit":
            break
        print(commands[command](*args), flush=True)
    peer.zk.stop()


if __name__ == "__main__":
    main()
