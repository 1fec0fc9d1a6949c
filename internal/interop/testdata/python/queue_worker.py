"""A user of one LockingQueue, driven by lines: queue_worker.py CONNECT PATH SESSION

put TEXT [PRIORITY]   adds an item; answers: put
get                   claims an item, waiting for at most 10 s; answers: got TEXT, or: none
consume               removes the claimed item; answers: True or False
release               gives the claimed item back; answers: True or False
drain N               claims and removes N items; answers: drained TEXT TEXT ...
len                   answers the length
quit
"""
import logging
import sys

from kazoo.client import KazooClient

logging.disable(logging.CRITICAL)


class Worker:
    def __init__(self, connect, path, session):
        self.zk = KazooClient(hosts=connect, timeout=float(session))
        self.zk.start(timeout=60)
        self.queue = self.zk.LockingQueue(path)

    def put(self, text, priority="100"):
        self.queue.put(text.encode(), int(priority))
        return "put"

    def get(self):
        value = self.queue.get(timeout=10)
        return "none" if value is None else "got " + value.decode()

    def consume(self):
        return self.queue.consume()

    def release(self):
        return self.queue.release()

    def drain(self, count):
        texts = []
        for _ in range(int(count)):
            value = self.queue.get(timeout=10)
            if value is None or not self.queue.consume():
                break
            texts.append(value.decode())
        return " ".join(["drained"] + texts)

    def len(self):
        return len(self.queue)


def main():
    worker = Worker(*sys.argv[1:4])
    print("ready", flush=True)
    for line in sys.stdin:
        words = line.split()
        if words == ["quit"]:
            break
        print(getattr(worker, words[0])(*words[1:]), flush=True)
    worker.zk.stop()
    worker.zk.close()


main()
