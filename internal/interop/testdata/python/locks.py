"""Kazoo's Lock, ReadLock and WriteLock, Semaphore and Election."""
import os
import signal
import subprocess
import sys

from kazoo.exceptions import CancelledError, LockTimeout

from checks import Task


def lock(s):
    a, b = s.client(), s.client()
    first, second = a.Lock(s.path, "a"), b.Lock(s.path, "b")
    s.check(first.acquire(timeout=10), "a free lock is acquired")
    s.check(not second.acquire(blocking=False), "a non-blocking acquire of a held lock gets nothing")
    s.raises(LockTimeout, lambda: second.acquire(timeout=0.2), "an acquire ends at its timeout")
    s.equal(first.contenders(), ["a"], "an acquire that timed out leaves no node")

    turn = Task(second.acquire, timeout=15)
    s.until(lambda: len(first.contenders()) == 2, "the second joins")
    third = s.client().Lock(s.path, "c")
    give_up = Task(third.acquire, timeout=15)
    s.until(lambda: len(first.contenders()) == 3, "the third joins")
    s.equal(first.contenders(), ["a", "b", "c"], "contenders are listed in their order")
    s.check(turn.pending() and give_up.pending(), "waiters wait while the lock is held")

    third.cancel()
    s.raises(CancelledError, lambda: give_up.result("cancel"), "a cancelled waiter is told")
    s.equal(first.contenders(), ["a", "b"], "a cancelled waiter leaves no node")
    first.release()
    s.check(turn.result("the second's turn"), "the next waiter acquires at the release")
    s.equal(second.contenders(), ["b"], "the released node is gone")
    second.release()
    s.equal(a.get_children(s.path), [], "nothing is left in the directory")


def lock_of_a_lost_session(s):
    a, b = s.client(), s.client()
    a.Lock(s.path, "a").acquire(timeout=10)
    turn = Task(b.Lock(s.path, "b").acquire, timeout=15)
    s.until(lambda: len(b.get_children(s.path)) == 2, "the second joins")
    a.stop()
    s.check(turn.result("after close"), "closing the holder's session passes the lock on")

    c = s.client()
    turn = Task(c.Lock(s.path, "c").acquire, timeout=15)
    s.until(lambda: len(c.get_children(s.path)) == 2, "the third joins")
    lost = []
    b.add_listener(lambda state: lost.append(state))
    s.end_session(b)
    s.check(turn.result("after the end"), "a session ended from elsewhere passes the lock on")
    s.until(lambda: "LOST" in lost, "the old holder hears of the loss")
    s.check(True, "the old holder hears that its session is lost")
    s.until(lambda: b.connected, "the old holder connects again")
    s.check(b.Lock(s.path, "b").acquire(blocking=False) is False, "on its new session it no longer holds the lock")


def lock_of_a_killed_process(s):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hold.py")
    child = subprocess.Popen(
        [sys.executable, program, s.connect, s.path, "killed", "2", "kazoo"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        s.equal(child.stdout.readline().strip(), "ready", "another process connects")
        child.stdin.write("acquire 10000\n")
        child.stdin.flush()
        s.equal(child.stdout.readline().strip(), "held", "another process acquires the lock")
        b = s.client()
        turn = Task(b.Lock(s.path + "/lock", "b").acquire, timeout=30)
        s.until(lambda: len(b.get_children(s.path + "/lock")) == 2, "the second joins")
        child.send_signal(signal.SIGKILL)
        s.check(turn.result("after the kill"), "a killed holder's session expires and the lock passes on")
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


def read_write_lock(s):
    a, b, c = s.client(), s.client(), s.client()
    reader, other, writer = a.ReadLock(s.path, "r1"), b.ReadLock(s.path, "r2"), c.WriteLock(s.path, "w")
    s.check(reader.acquire(timeout=10) and other.acquire(timeout=10), "two readers hold together")
    turn = Task(writer.acquire, timeout=15)
    s.until(lambda: len(a.get_children(s.path)) == 3, "the writer joins")
    late = s.client().ReadLock(s.path, "r3")
    s.raises(LockTimeout, lambda: late.acquire(timeout=0.2), "a reader waits behind an earlier writer")
    reader.release()
    s.check(turn.pending(), "the writer waits for the last reader")
    other.release()
    s.check(turn.result("the writer's turn"), "the writer holds when the last reader has left")
    s.raises(LockTimeout, lambda: late.acquire(timeout=0.2), "a reader waits while a writer holds")
    writer.release()
    s.check(late.acquire(timeout=10), "the reader holds when the writer has left")


def semaphore(s):
    zks = [s.client() for _ in range(4)]
    sems = [zk.Semaphore(s.path, "s%d" % i, max_leases=2) for i, zk in enumerate(zks)]
    s.check(sems[0].acquire(timeout=10) and sems[1].acquire(timeout=10), "two leases are granted")
    s.raises(LockTimeout, lambda: sems[2].acquire(timeout=0.3), "a third acquire ends at its timeout")
    s.check(not sems[2].acquire(blocking=False), "a non-blocking acquire of a full semaphore gets nothing")
    s.equal(sorted(sems[0].lease_holders()), ["s0", "s1"], "the holders are known")
    s.equal(zks[0].get(s.path)[0], b"2", "the limit is stored in the node")
    wrong = s.client().Semaphore(s.path, max_leases=3)
    s.raises(ValueError, lambda: wrong.acquire(timeout=10), "another limit is refused")

    turn = Task(sems[2].acquire, timeout=15)
    s.until(lambda: len(zks[0].get_children(s.path + "-__lock__")) == 1, "the third takes the queue's lock")
    s.check(turn.pending(), "the third waits while both leases are taken")
    sems[0].release()
    s.check(turn.result("the third's turn"), "a released lease is granted to the waiter")

    turn = Task(sems[3].acquire, timeout=15)
    s.until(lambda: len(zks[3].get_children(s.path + "-__lock__")) == 1, "the fourth takes the queue's lock")
    zks[1].stop()
    s.check(turn.result("the fourth's turn"), "the lease of a closed session is granted to the waiter")
    s.equal(sorted(sems[2].lease_holders()), ["s2", "s3"], "never more than two leases exist")


def election(s):
    a, b, c = s.client(), s.client(), s.client()
    calls = []
    elections = {name: zk.Election(s.path, name) for name, zk in (("a", a), ("b", b), ("c", c))}
    resign = a.handler.event_object()

    def lead_a():
        calls.append("a leads")
        resign.wait(15)
        calls.append("a resigns")

    first = Task(elections["a"].run, lead_a)
    s.until(lambda: calls == ["a leads"], "the first candidate leads")
    second = Task(elections["b"].run, lambda: calls.append("b leads"))
    s.until(lambda: len(elections["a"].contenders()) == 2, "the second candidate joins")
    third = Task(elections["c"].run, lambda: calls.append("c leads"))
    s.until(lambda: len(elections["a"].contenders()) == 3, "the third candidate joins")
    s.equal(elections["b"].contenders(), ["a", "b", "c"], "candidates are listed, the leader first")
    elections["c"].cancel()
    third.result("c's cancel")
    s.equal(elections["b"].contenders(), ["a", "b"], "a cancelled candidate is out")
    s.equal(calls, ["a leads"], "nobody else leads meanwhile")
    resign.set()
    first.result("a's end")
    second.result("b's end")
    s.equal(calls, ["a leads", "a resigns", "b leads"], "the next candidate leads after the leader resigned")

    hold = b.handler.event_object()
    Task(elections["b"].run, lambda: (calls.append("b again"), hold.wait(15)))
    s.until(lambda: calls[-1] == "b again", "b leads again")
    heir = Task(a.Election(s.path, "a2").run, lambda: calls.append("a2 leads"))
    s.until(lambda: len(a.get_children(s.path)) == 2, "an heir joins")
    b.stop()
    heir.result("the heir's turn")
    s.equal(calls[-1], "a2 leads", "the end of the leader's session makes the next one leader")
    hold.set()


SECTIONS = {
    "Lock": lock,
    "LockOfALostSession": lock_of_a_lost_session,
    "LockOfAKilledProcess": lock_of_a_killed_process,
    "ReadWriteLock": read_write_lock,
    "Semaphore": semaphore,
    "Election": election,
}
