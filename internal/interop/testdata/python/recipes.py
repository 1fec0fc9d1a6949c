"""Kazoo's recipes against a ZooKeeper server: recipes.py CONNECT ROOT

ROOT is a path of the program's own. See checks.py for the output.
"""
import sys

import checks
import data
import locks

if __name__ == "__main__":
    checks.run({**locks.SECTIONS, **data.SECTIONS}, sys.argv[1], sys.argv[2])
