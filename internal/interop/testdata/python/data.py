"""Kazoo's queue, counter and barriers, transactions, watches and sessions."""
import threading

from kazoo.exceptions import (
    BadVersionError, NodeExistsError, NoAuthError, NoNodeError, RolledBackError, RuntimeInconsistency)
from kazoo.security import CREATOR_ALL_ACL, make_digest_acl

from checks import Task


def locking_queue(s):
    a, b = s.client(), s.client()
    one, two = a.LockingQueue(s.path), b.LockingQueue(s.path)
    s.equal(one.get(timeout=0.2), None, "an empty queue yields nothing within the timeout")
    one.put(b"later", priority=200)
    one.put_all([b"first", b"second"], priority=100)
    s.equal(len(two), 3, "every item is counted")
    s.equal((one.get(timeout=10), two.get(timeout=10)), (b"first", b"second"),
            "two consumers get different items, by priority and age")
    s.equal(one.get(timeout=1), b"first", "a consumer gets the same item until it is done with it")
    s.check(one.holds_lock() and one.consume(), "an item in hand is consumed")
    s.check(two.release(), "an item in hand is given back")
    s.equal(one.get(timeout=10), b"second", "an item given back goes to another consumer")

    s.equal(two.get(timeout=10), b"later", "the other consumer gets the last item")
    three = s.client().LockingQueue(s.path)
    turn = Task(three.get, timeout=15)
    s.until(lambda: len(b.get_children(s.path + "/taken")) == 2, "both items are taken")
    a.stop()
    s.equal(turn.result("the item of the dead"), b"second", "the item of a closed session comes back")
    s.check(three.consume() and two.consume(), "both items are consumed")
    s.equal(len(two), 0, "nothing is left")
    s.equal(b.get_children(s.path + "/taken"), [], "no claim is left")

    turn = Task(two.get, timeout=15)
    three.put(b"news")
    s.equal(turn.result("the waiting consumer"), b"news", "a waiting consumer gets a new item")


def queue(s):
    a, b = s.client().Queue(s.path), s.client().Queue(s.path)
    a.put(b"low", priority=300)
    a.put(b"x")
    a.put(b"y")
    s.equal([b.get(), b.get(), b.get(), b.get()], [b"x", b"y", b"low", None], "items come out by priority and age")


def counter(s):
    zks = [s.client() for _ in range(3)]

    def add(zk):
        shared = zk.Counter(s.path + "/int")
        for _ in range(20):
            shared += 1

    tasks = [Task(add, zk) for zk in zks]
    for task in tasks:
        task.result("increments")
    shared = zks[0].Counter(s.path + "/int")
    s.equal(shared.value, 60, "no increment of three clients is lost")
    shared -= 7
    s.equal((shared.pre_value, shared.post_value), (60, 53), "a change tells the values around it")
    parts = zks[1].Counter(s.path + "/float", default=1.5)
    parts += 2.25
    s.equal(parts.value, 3.75, "floats are counted")
    curator = zks[2].Counter(s.path + "/curator", support_curator=True)
    curator += 258
    s.equal(zks[0].get(s.path + "/curator")[0], b"\x00\x00\x01\x02", "Curator's four bytes are written")


def barrier(s):
    a, b = s.client().Barrier(s.path), s.client().Barrier(s.path)
    s.check(a.wait(0.1), "a barrier that is not there lets everybody pass")
    a.create()
    s.check(not b.wait(0.1), "a barrier holds until the timeout")
    turn = Task(b.wait, 15)
    s.check(a.remove() and turn.result("the barrier's end"), "its removal lets the waiter pass")
    s.check(not a.remove(), "it is removed once")


def double_barrier(s):
    zks = [s.client() for _ in range(3)]
    members = [zk.DoubleBarrier(s.path, 3, "m%d" % i) for i, zk in enumerate(zks)]
    entering = [Task(m.enter) for m in members[:2]]
    s.until(lambda: zks[2].exists(s.path) and len(zks[2].get_children(s.path)) == 2, "two members arrive")
    s.check(all(task.pending() for task in entering), "nobody enters before the last has come")
    members[2].enter()
    for task in entering:
        task.result("enter")
    s.check(all(m.participating for m in members), "all enter when the last has come")
    s.equal(sorted(zks[0].get(s.path + "/" + m.node_name)[0] for m in members), [b"m0", b"m1", b"m2"],
            "each member's node names it")

    # The lowest member waits for the highest; with it in the middle of the
    # leaving ones nobody can be through before the last has left.
    members.sort(key=lambda m: m.node_name)
    leaving = [Task(m.leave) for m in (members[0], members[1])]
    s.until(lambda: len(zks[0].get_children(s.path)) == 2, "one member has taken its node away")
    s.check(all(task.pending() for task in leaving), "nobody leaves before the last does")
    members[2].leave()
    for task in leaving:
        task.result("leave")
    s.equal(zks[0].get_children(s.path), [], "all leave when the last does, and nothing is left")


def transaction(s):
    zk, other = s.client(), s.client()
    zk.create(s.path, b"v0", makepath=True)
    zk.create(s.path + "/old")
    t = zk.transaction()
    t.create(s.path + "/new", b"data")
    t.check(s.path, 0)
    t.set_data(s.path, b"v1", 0)
    t.delete(s.path + "/old")
    t.create(s.path + "/n-", b"", sequence=True, ephemeral=True)
    created, checked, stat, deleted, numbered = t.commit()
    s.equal((created, checked, deleted), (s.path + "/new", True, True), "a transaction returns each result")
    s.equal(stat.version, 1, "a transaction returns the new Stat")
    s.equal(numbered, s.path + "/n-0000000002", "a transaction returns the sequential name")
    s.equal(other.get(s.path)[0], b"v1", "its writes are there")
    s.equal(sorted(other.get_children(s.path)), ["n-0000000002", "new"], "all of them")

    t = zk.transaction()
    t.create(s.path + "/never")
    t.set_data(s.path, b"v2", 7)
    t.delete(s.path + "/new")
    results = t.commit()
    s.equal([type(r) for r in results], [RolledBackError, BadVersionError, RuntimeInconsistency],
            "a failed transaction tells which operation failed")
    s.equal(other.get(s.path)[0], b"v1", "a failed transaction changes nothing")
    s.equal(sorted(other.get_children(s.path)), ["n-0000000002", "new"], "and creates and deletes nothing")
    s.equal(zk.create(s.path + "/n-", sequence=True), s.path + "/n-0000000003", "nor moves the sequence counter")


def watches(s):
    a, b = s.client(), s.client()
    a.ensure_path(s.path + "/node")
    data, children, changed = [], [], threading.Event()

    a.DataWatch(s.path + "/node", lambda value, stat, event: (data.append(value), changed.set()) and None)
    a.ChildrenWatch(s.path + "/node", lambda names: (children.append(sorted(names)), changed.set()) and None)
    b.set(s.path + "/node", b"1")
    s.until(lambda: data[-1] == b"1", "the first change")
    b.set(s.path + "/node", b"2")
    s.until(lambda: data[-1] == b"2", "the second change")
    s.equal(data, [b"", b"1", b"2"], "a data watch sees each awaited change")
    b.create(s.path + "/node/x")
    s.until(lambda: children[-1] == ["x"], "the child")
    b.delete(s.path + "/node/x")
    s.until(lambda: children[-1] == [], "no child")
    s.equal(children, [[], ["x"], []], "a children watch sees each awaited change")
    b.delete(s.path + "/node")
    s.until(lambda: data[-1] is None, "the deletion")
    s.check(True, "a data watch sees the deletion")


def session(s):
    a, b = s.client(), s.client()
    s.equal(a.server_version()[:2], (3, 8), "the server tells a version Kazoo can read")
    a.create(s.path + "/eph", b"", ephemeral=True, makepath=True)
    stat = b.exists(s.path + "/eph")
    s.equal(stat.ephemeralOwner, a.client_id[0], "an ephemeral node names its session")
    path, stat = a.create(s.path + "/stat", b"abc", include_data=True)
    s.equal((path, stat.dataLength, stat.version), (s.path + "/stat", 3, 0), "a create returns path and Stat")
    gone = threading.Event()
    b.exists(s.path + "/eph", watch=lambda event: gone.set())
    a.stop()
    s.check(gone.wait(15), "a watcher hears of the end of a session's ephemeral node")
    s.equal(b.exists(s.path + "/eph"), None, "an ephemeral node is gone with its session")

    held, c = threading.Event(), s.client()
    c.create(s.path + "/lost", ephemeral=True)
    c.add_listener(lambda state: held.set() if state == "LOST" else None)
    b.exists(s.path + "/lost", watch=lambda event: gone.set())
    s.end_session(c)
    s.equal(b.exists(s.path + "/lost"), None, "a session ended from elsewhere takes its nodes along")
    s.check(held.wait(15), "its client is told of the loss")


def acl(s):
    a, b = s.client(), s.client()
    a.add_auth("digest", "user:secret")
    a.create(s.path, b"x", acl=[make_digest_acl("user", "secret", all=True)], makepath=True)
    s.raises(NoAuthError, lambda: b.get(s.path), "a stranger may not read")
    s.equal(a.get(s.path)[0], b"x", "the owner may")
    b.add_auth("digest", "user:secret")
    s.equal(b.get(s.path)[0], b"x", "so may who knows the password")
    s.raises(NodeExistsError, lambda: b.create(s.path), "an existing node is told")
    s.raises(NoNodeError, lambda: b.get(s.path + "/none"), "so is a missing one")
    a.create(s.path + "/mine", b"y", acl=CREATOR_ALL_ACL)
    s.raises(NoAuthError, lambda: s.client().get(s.path + "/mine"), "what belongs to its creator is closed to a stranger")
    s.equal(b.get(s.path + "/mine")[0], b"y", "and open to whoever has its credential")
    a.delete(s.path + "/mine")
    a.delete(s.path)  # nobody else could look into it


SECTIONS = {
    "LockingQueue": locking_queue,
    "Queue": queue,
    "Counter": counter,
    "Barrier": barrier,
    "DoubleBarrier": double_barrier,
    "Transaction": transaction,
    "Watches": watches,
    "Session": session,
    "ACL": acl,
}
