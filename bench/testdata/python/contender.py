"""Kazoo's recipes under the tasks of package bench: its program.go has the protocol and the tasks."""
import logging
import statistics
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.barrier import DoubleBarrier
from kazoo.recipe.lock import Lock
from kazoo.recipe.queue import LockingQueue

ITEM = bytes(100)
BACKLOG = 100


class Job:
    """A task that is under way."""

    def __init__(self, words):
        self.task = dict(word.split("=", 1) for word in words)
        self.path, self.during = self.task["path"], self.number("during") / 1000
        self.over, self.failure = False, None
        self.sessions, self.threads, self.locks = [], [], []
        addrs = self.task["addrs"].split(",")
        for i in range(self.number("sessions")):
            session = KazooClient(hosts=addrs[i % len(addrs)], timeout=self.number("timeout") / 1000)
            session.start(timeout=30)
            self.sessions.append(session)
        self.prepare()

    def number(self, key):
        return int(self.task[key])

    def prepare(self):
        """Lets the work begin that goes on."""

    def work(self, step):
        """Repeats a step in a thread until the task is over."""

        def loop():
            try:
                while not self.over:
                    step()
            except Exception as e:
                if not self.over:
                    self.failure = repr(e)

        thread = threading.Thread(target=loop, daemon=True)
        self.threads.append(thread)
        thread.start()

    def run(self):
        begun = time.monotonic()
        figures = self.measure()
        if self.failure:
            raise RuntimeError(self.failure)
        return "%s seconds=%f" % (figures, time.monotonic() - begun)

    def close(self):
        self.over = True
        for lock in self.locks:
            lock.cancel()
        for thread in self.threads:
            thread.join(2)
        for session in self.sessions:
            session.stop()
            session.close()


class Contend(Job):
    def prepare(self):
        self.on, self.last, self.between = False, {}, []
        self.mutex = threading.Lock()
        shared = self.path + "/shared"
        gate = Lock(self.sessions[0], shared)
        gate.acquire()
        for i, session in enumerate(self.sessions):
            for k in range(self.number("each")):
                path = "%s/own-%d-%d" % (self.path, i, k) if self.task["own"] == "true" else shared
                lock = Lock(session, path)
                self.locks.append(lock)
                self.work(lambda lock=lock, path=path: self.cycle(lock, path))
        time.sleep(self.number("settle") / 1000)
        gate.release()

    def cycle(self, lock, path):
        if not lock.acquire():
            return
        now = time.monotonic()
        with self.mutex:
            if self.on and path in self.last:
                self.between.append(now - self.last[path])
            self.last[path] = now
        lock.release()

    def measure(self):
        self.on = True
        time.sleep(self.during)
        self.on = False
        return "ops=%d p50=%f" % (len(self.between), statistics.median(self.between or [0]))


class Wait(Job):
    def measure(self):
        Lock(self.sessions[0], self.path + "/lock").acquire()
        return "ops=1"


class Barrier(Job):
    def prepare(self):
        n = len(self.sessions)
        self.barriers = [DoubleBarrier(session, self.path + "/barrier", n) for session in self.sessions]
        self.round()

    def round(self):
        begun = time.monotonic()
        self.together(DoubleBarrier.enter)
        entered = time.monotonic()
        self.together(DoubleBarrier.leave)
        return entered - begun, time.monotonic() - entered

    def together(self, call):
        calls = [threading.Thread(target=call, args=(barrier,), daemon=True) for barrier in self.barriers]
        for thread in calls:
            thread.start()
        for thread in calls:
            thread.join()

    def measure(self):
        end, took = time.monotonic() + self.during, []
        while time.monotonic() < end:
            took.append(self.round())
        enter, leave = (statistics.median(times) for times in zip(*took))
        return "ops=%d enter=%f leave=%f" % (len(took) * len(self.sessions), enter, leave)


class Queue(Job):
    def prepare(self):
        self.room, self.consumed, self.mutex = threading.Semaphore(BACKLOG), 0, threading.Lock()
        for i, session in enumerate(self.sessions):
            queue = LockingQueue(session, self.path + "/queue")
            step = self.consume if i < self.number("each") else self.produce
            self.work(lambda queue=queue, step=step: step(queue))
        time.sleep(self.number("settle") / 1000)

    def produce(self, queue):
        if self.room.acquire(timeout=1):
            queue.put(ITEM)

    def consume(self, queue):
        if queue.get(timeout=1) is not None and queue.consume():
            with self.mutex:
                self.consumed += 1
            self.room.release()

    def measure(self):
        before = self.consumed
        time.sleep(self.during)
        return "ops=%d" % (self.consumed - before)


WORK = {"contend": Contend, "wait": Wait, "barrier": Barrier, "queue": Queue}


def answer(command, words, jobs):
    if command == "prepare":
        jobs[:] = [WORK[dict(word.split("=", 1) for word in words)["work"]](words)]
        return "prepared"
    if command == "run":
        return "figures " + jobs[0].run()
    jobs[0].close()
    return "closed"


def main():
    logging.disable(logging.CRITICAL)
    jobs = []
    for line in sys.stdin:
        command, *words = line.split()
        try:
            print(answer(command, words, jobs), flush=True)
        except Exception as e:
            print("error", repr(e).replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
