"""The frame of the Kazoo programs: sections of checks, clients, background tasks.

Output, one line per check: ok<TAB>section<TAB>sentence. A failing section
prints fail<TAB>section<TAB>reason, the others still run, and the exit status
is 1. Nothing here waits without a deadline.
"""
import logging
import os
import sys
import threading
import time
import traceback

from kazoo.client import KazooClient

WAIT = 15.0  # longest wait for anything that has to happen, seconds
SECTION = 45.0  # longest life of a section, seconds
RUN = 90.0  # longest life of the whole program, seconds
SESSION = 10.0  # session timeout asked for unless a check says otherwise

_print_lock = threading.Lock()


def say(*fields):
    with _print_lock:
        print("\t".join(str(f).replace("\n", " ") for f in fields), flush=True)


class Failed(Exception):
    """A check did not hold."""


class Task:
    """A call running in a daemon thread, with its result or error."""

    def __init__(self, call, *args, **kwargs):
        self._ended = threading.Event()
        self._value = self._error = None
        threading.Thread(target=self._run, args=(call, args, kwargs), daemon=True).start()

    def _run(self, call, args, kwargs):
        try:
            self._value = call(*args, **kwargs)
        except BaseException as error:  # handed to whoever asks for the result
            self._error = error
        finally:
            self._ended.set()

    def pending(self):
        return not self._ended.is_set()

    def result(self, what, within=WAIT):
        if not self._ended.wait(within):
            raise Failed("%s: still waiting after %g s" % (what, within))
        if self._error is not None:
            raise self._error
        return self._value


class Section:
    """What one group of checks is given: a path of its own, clients, checks."""

    def __init__(self, name, connect, root):
        self.name, self.connect = name, connect
        self.path = "%s/%s" % (root, name)
        self._clients = []

    def client(self, timeout=SESSION, **options):
        zk = KazooClient(hosts=self.connect, timeout=timeout, **options)
        zk.start(timeout=WAIT)
        self._clients.append(zk)
        return zk

    def end_session(self, zk):
        """Ends the session of zk at the server by closing it on a second
        connection: to zk it is an expiry. Both connections claim the session,
        so it takes another attempt when zk was quicker to claim it back."""
        marker = zk.create(self.path + "-ends-", ephemeral=True, sequence=True, makepath=True)
        watcher = self.client()

        def ended():
            self.client(client_id=zk.client_id).stop()
            return watcher.exists(marker) is None

        session = zk.client_id
        self.until(lambda: zk.client_id != session or ended(), "the session's end")

    def check(self, holds, sentence, detail=""):
        if not holds:
            raise Failed("not so: %s %s" % (sentence, detail))
        say("ok", self.name, sentence)

    def equal(self, got, want, sentence):
        self.check(got == want, sentence, "(got %r, want %r)" % (got, want))

    def raises(self, kind, call, sentence):
        try:
            value = call()
        except kind:
            self.check(True, sentence)
        else:
            raise Failed("not so: %s (no %s, but %r)" % (sentence, kind.__name__, value))

    def until(self, condition, what):
        """Waits for a condition; not a check by itself."""
        deadline = time.monotonic() + WAIT
        while not condition():
            if time.monotonic() > deadline:
                raise Failed("%s: not within %g s" % (what, WAIT))
            time.sleep(0.01)

    def close(self):
        for zk in self._clients:
            zk.stop()
            zk.close()


def _run_section(name, body, connect, root):
    section = Section(name, connect, root)
    try:
        body(section)
    finally:
        section.close()


def run(sections, connect, root):
    """Runs the sections one after the other and ends the process."""
    logging.disable(logging.CRITICAL)
    failed = []
    end = time.monotonic() + RUN
    for name, body in sections.items():
        task = Task(_run_section, name, body, connect, root)
        try:
            task.result("the section", min(SECTION, max(0, end - time.monotonic())))
        except BaseException as error:
            failed.append(name)
            say("fail", name, "%s: %s" % (type(error).__name__, error))
            traceback.print_exc()
    sys.stderr.flush()
    os._exit(1 if failed else 0)  # a section that hangs must not hold the process
