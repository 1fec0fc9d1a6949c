"""A test with Kazoo: lost_reply.py CONNECT CONTROL [without]

It passes because Kazoo's retry repeats a create whose reply was lost. Without
the fault it fails.
"""
import json
import sys
import urllib.request

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry


def ask(method, url, fault=None):
    body = None if fault is None else json.dumps(fault).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body, method=method)) as answer:
        return json.load(answer)


def test_a_job_is_put_twice_when_the_reply_is_lost(connect, control, faulty=True):
    zk = KazooClient(hosts=connect)
    zk.start()
    zk.ensure_path("/jobs")
    if faulty:
        fault = ask("POST", control + "/faults", {
            "do": "lose_reply", "ops": ["create"], "path_prefix": "/jobs/", "times": 1, "sessions": [zk.client_id[0]]})
    KazooRetry(max_tries=5)(zk.create, "/jobs/job-", b"send the invoice", sequence=True)
    if faulty:
        assert ask("GET", control + "/faults/%d" % fault["id"])["struck"] == 1
    assert len(zk.get_children("/jobs")) == 2
    zk.stop()


if __name__ == "__main__":
    test_a_job_is_put_twice_when_the_reply_is_lost(sys.argv[1], sys.argv[2], len(sys.argv) == 3)
