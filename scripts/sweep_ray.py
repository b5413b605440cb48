#!/usr/bin/env python3
"""Runs the points of a sweep as tasks of Ray. `rackloom sweep --engine ray` writes and calls this file.

Each task is one process of `rackloom sweep --point N`. A task whose process dies is run once more; the others are not concerned. Points that have
a result end at once. Workers must see the directory of the sweep and the program under the same paths.
"""

import argparse
import json
import os
import subprocess
import sys

ATTEMPTS = 2


def run_point(program, directory, index):
    """Runs one point. Returns its number, and the reason if it died."""
    command = [program, "sweep", "--point", str(index), "--out", directory]
    for _ in range(ATTEMPTS):
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if ended.returncode == 0:
            return index, None
    lines = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
    return index, f"exit code {ended.returncode}" + (f": {lines[0]}" if lines else "")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rackloom", required=True, help="path of the program")
    parser.add_argument("--out", required=True, help="directory of the sweep")
    parser.add_argument("--address", help="address of a cluster; without it, Ray starts on this machine")
    parser.add_argument("--jobs", type=int, help="tasks at the same time")
    return parser.parse_args()


def main():
    options = arguments()
    try:
        import ray
    except ImportError as error:
        print(f"error: Ray is not installed: {error}\n  hint:  pip install ray", file=sys.stderr)
        return 3
    with open(os.path.join(options.out, "manifest.jsonl"), encoding="utf-8") as lines:
        indices = [json.loads(line)["index"] for line in lines]
    ray.init(address=options.address, log_to_driver=False, include_dashboard=False if not options.address else None)
    task = ray.remote(run_point).options(num_cpus=1, max_retries=1)
    # A bounded number of tasks is open, so that a large grid does not fill the memory of the driver.
    open_max = options.jobs or 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting = iter(indices)
    pending = {}
    finished = 0
    is_pass = True
    while True:
        while len(pending) < open_max and (index := next(waiting, None)) is not None:
            pending[task.remote(options.rackloom, options.out, index)] = index
        if not pending:
            break
        done, _ = ray.wait(list(pending), num_returns=1)
        for reference in done:
            index = pending.pop(reference)
            try:
                _, reason = ray.get(reference)
            except ray.exceptions.RayError as error:
                reason = str(error).splitlines()[0]
            finished += 1
            if reason:
                is_pass = False
                print(f"point {index} died: {reason}", file=sys.stderr)
        if sys.stderr.isatty():
            print(f"\r{finished} of {len(indices)} points", end="", file=sys.stderr, flush=True)
    ray.shutdown()
    if not is_pass:
        print("some points died; `rackloom sweep --collect` lists them", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
