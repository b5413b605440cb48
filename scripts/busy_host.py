#!/usr/bin/env python3
"""Runs healthy racks beside a heavy load and counts how they end.

A busy host must not kill a healthy rack. This script makes the load that used to do it (racks of 37 nodes, a simulation, a build, busy
loops, memory traffic), runs racks of `topologies/` and a ring of 37 beside it, and prints the distribution of their ends. It exits with 1
if more than one run in a hundred does not pass or if any live node was called dead.

    scripts/busy_host.py target/release/rackloom --runs 200
    scripts/busy_host.py target/release/rackloom --runs 50 --half-cpu      # all of it in a control group with half a processor

It needs Python 3 alone. `--half-cpu` needs the right to make a control group, and reports if it is missing.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Racks of several hosts, and those that need a GPU, do not run alone on one machine.
LEFT_OUT = ("two-hosts", "gpu-")
EXITS = {0: "pass", 1: "fail", 2: "bad input", 3: "could not start", 4: "node lost", 5: "stalled", 8: "starved"}
RING_37 = """name: ring-37
shape: {ring: {nodes: 37}}
job: {collective: {collective: all-reduce, algorithm: ring, bytes: 64KiB, repetitions: 20, warm_up: 0}}
"""
RUN_SECONDS_MAX = 180
SPIN = "while True: pass"
COPY = "a = bytearray(64 << 20)\nwhile True: b = bytes(a)"


def repeat(command):
    """Returns a shell command that runs the command for ever and ignores its exit code."""
    return ["sh", "-c", 'while :; do "$@" >/dev/null 2>&1; done', "sh", *command]


def load(binary, ring_37, scratch):
    """The load: a list of commands."""
    commands = [repeat([binary, "run", ring_37, "--job", "litmus", "--loss", "3%"])] * 2
    commands.append(repeat([binary, "sim", str(ROOT / "topologies/ring-64.yaml")]))
    commands += [[sys.executable, "-c", SPIN]] * 4 + [[sys.executable, "-c", COPY]]
    if shutil.which("cargo"):
        build = ["sh", "-c", f"cd {ROOT} && rm -rf {scratch}/build && "
                             f"CARGO_TARGET_DIR={scratch}/build cargo check --offline --package rackloom-plan"]
        commands.append(repeat(build))
    return commands


def half_a_processor():
    """Moves this process, and so all that it starts, into a control group with half a processor."""
    name = f"rackloom-busy-{os.getpid()}"
    v2, v1 = pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/sys/fs/cgroup/cpu")
    try:
        group = (v1 if (v1 / "cpu.cfs_quota_us").exists() or not (v2 / "cgroup.controllers").exists() else v2) / name
        group.mkdir()
        if (group / "cpu.cfs_quota_us").exists():
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text("50000")
        else:
            (group / "cpu.max").write_text("50000 100000")
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        sys.exit(f"cannot make a control group: {error}; hint: run as root where control groups are writable")


def one_run(binary, rack, report, logs):
    """Runs a rack. Returns exit code (None after a timeout), seconds, report, and what it printed on standard error."""
    began = time.monotonic()
    command = [binary, "run", str(rack), "--json", str(report)] + (["--log-dir", str(logs), "-v"] if logs else [])
    try:
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               timeout=RUN_SECONDS_MAX, check=False)
        code, printed = ended.returncode, ended.stderr
    except subprocess.TimeoutExpired:
        code, printed = None, ""
    read = json.loads(report.read_text()) if report.exists() else {}
    report.unlink(missing_ok=True)
    return code, time.monotonic() - began, read, printed


def keep(directory, number, rack, report, printed, logs):
    """Keeps the report, the logs and the messages of a run that did not pass."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{number}-{rack.stem}.json").write_text(json.dumps(report))
    (directory / f"{number}-{rack.stem}.txt").write_text(printed)
    if logs.exists():
        shutil.copytree(logs, directory / f"{number}-{rack.stem}")


def false_deaths(report):
    """Members that were called dead. No run here kills any."""
    return {event["fields"]["node"] for event in report.get("events", []) if event["kind"] == "node-lost"}


def spread(values):
    values = sorted(values) or [0]
    return f"median {statistics.median(values):.0f}, 99th {values[int(0.99 * (len(values) - 1))]:.0f}, max {values[-1]:.0f}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("binary")
    arguments.add_argument("--runs", type=int, default=200)
    arguments.add_argument("--half-cpu", action="store_true", help="limit load and racks to half a processor")
    arguments.add_argument("--racks", type=lambda text: text.split(","), help="names of the racks to run, such as ring-37,ring-64; all if absent")
    arguments.add_argument("--keep", type=pathlib.Path, help="directory for the reports of runs that did not pass")
    arguments.add_argument("--no-load", action="store_true", help="only the racks")
    options = arguments.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    if options.half_cpu:
        half_a_processor()
    ends, deaths, late_ms, waited_ms, put_off = collections.Counter(), 0, [], [], 0
    with tempfile.TemporaryDirectory() as scratch:
        ring_37 = pathlib.Path(scratch) / "ring-37.yaml"
        ring_37.write_text(RING_37)
        racks = sorted(path for path in (ROOT / "topologies").glob("*.yaml") if not path.name.startswith(LEFT_OUT))
        racks.append(ring_37)
        if options.racks:
            racks = [rack for rack in racks if rack.stem in options.racks]
        commands = [] if options.no_load else load(binary, str(ring_37), scratch)
        loads = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  start_new_session=True) for command in commands]
        try:
            for number in range(options.runs):
                rack = racks[number % len(racks)]
                logs = pathlib.Path(scratch) / f"logs-{number}" if options.keep else None
                code, seconds, report, printed = one_run(binary, rack, pathlib.Path(scratch) / "report.json", logs)
                end = "no end in time" if code is None else EXITS.get(code, f"exit {code}")
                lost = false_deaths(report)
                if options.keep and (end != "pass" or lost):
                    keep(options.keep, number + 1, rack, report, printed, logs)
                ends[end] += 1
                deaths += bool(lost)
                nodes = report.get("nodes", [])
                late_ms.append(max((node.get("timer_late_max_ns", 0) for node in nodes), default=0) / 1e6)
                shortages = [node.get("shortage", {}) for node in nodes]
                waited_ms.append(max((one.get("neighbour_waited_max_ns", 0) for one in shortages), default=0) / 1e6)
                put_off += sum(one.get("deaths_put_off", 0) for one in shortages)
                load_average = os.getloadavg()[0]
                print(f"{number + 1:4} {rack.stem:22} {end:16} {seconds:6.1f} s  late {late_ms[-1]:6.0f} ms  "
                      f"load {load_average:5.1f}  {'lost ' + ', '.join(sorted(lost)) if lost else ''}", flush=True)
        finally:
            for process in loads:
                os.killpg(process.pid, 15)
    print(f"\n{options.runs} runs: " + ", ".join(f"{count} {end}" for end, count in ends.most_common()))
    print(f"runs with a false death: {deaths}; deaths put off: {put_off}")
    print(f"latest timer of a run, ms: {spread(late_ms)}")
    print(f"longest wait of a neighbour for a processor, ms: {spread(waited_ms)}")
    sys.exit(0 if ends["pass"] * 100 >= options.runs * 99 and deaths == 0 else 1)


if __name__ == "__main__":
    main()
