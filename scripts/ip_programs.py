#!/usr/bin/env python3
"""Runs unmodified programs that use IP between seats of racks, and checks what they say and what the links carried.

    scripts/ip_programs.py target/release/rackloom              # all wires, with and without loss: some four minutes
    scripts/ip_programs.py target/release/rackloom --quick      # one wire: half a minute

The programs are ping, iperf3, curl, MPICH over TCP, and torch with its gloo backend, as far as they are installed; others are named as missing. The columns are the
rate that the program states ("stays at end": its results are right, and it did not exit), TCP's own retransmissions, and the frames that the fabric sent again. The exit code is 1 if a run failed. It needs Python 3
alone.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from verbs_programs import RUN_SECONDS_MAX, Rack

COULD_NOT_START = 3
MPICH_SECONDS_MAX = 30
TORCH_PROGRAM = """
import os, torch, torch.distributed as dist
rank, ranks = (int(os.environ[name]) for name in ("RACKLOOM_RANK", "RACKLOOM_RANKS"))
os.environ.update(GLOO_SOCKET_IFNAME="rack0")
dist.init_process_group("gloo", init_method="tcp://n0:29500", rank=rank, world_size=ranks)
array = torch.arange(1 << 18) + rank
dist.all_reduce(array)
assert torch.equal(array, torch.arange(1 << 18) * ranks + sum(range(ranks)))
dist.destroy_process_group()
"""


def refusal(binary):
    """Returns why seats have no networks on this system, or None if they have."""
    with tempfile.TemporaryDirectory(prefix="ip-") as folder:
        rack = Rack(binary, "star", "shared-memory", "", pathlib.Path(folder))
        try:
            ended = subprocess.run([binary, "exec", "--seat", "n0", "--net", "rack", "--", "true"], capture_output=True,
                                   text=True, env=rack.environment, timeout=RUN_SECONDS_MAX, check=False)
        finally:
            rack.down()
        return ended.stderr.strip() if ended.returncode == COULD_NOT_START else None


class Failed(Exception):
    """A run did not do what it must."""


def client(rack, words, server=None):
    """Runs a program on n1, with a server on n0 that listens when the program finds it. Returns its output."""
    deadline = time.monotonic() + RUN_SECONDS_MAX
    if server:
        rack.processes.append(rack.start("n0", server))
    while True:
        process = rack.start("n1", words)
        code, output = rack.end("n1", process, deadline)
        # iperf3 ends with 0 although its server does not listen yet.
        if code == 0 and "Connection refused" not in output:
            rack.processes.append(process)
            return output
        process.stdin.close()
        process.wait()
        rack.ended("n1").unlink(missing_ok=True)
        if time.monotonic() > deadline - RUN_SECONDS_MAX * 3 / 4:
            raise Failed(f"{words[0]} ended with {code}: {' / '.join(output.strip().splitlines()[-3:])}")


def ping(rack):
    rack.processes.append(rack.start("n0", ["sleep", "1000"]))
    output = client(rack, ["ping", "-q", "-c", "50", "-i", "0.02", "n0"])
    if ", 0% packet loss" not in output:
        raise Failed(output.strip())
    return f"{re.search(r'= [0-9.]+/([0-9.]+)/', output)[1]} ms", "-"


def iperf3(rack):
    output = client(rack, ["iperf3", "-c", "n0", "-t", "3", "--json"], ["iperf3", "-s"])
    answer = json.loads(output)
    end = answer["end"]
    if "sum_received" not in end:
        raise Failed(f"iperf3 says {answer.get('error', output[-300:])}")
    return f"{end['sum_received']['bits_per_second'] / 1e9:.2f} Gbit/s", str(end["sum_sent"]["retransmits"])


def curl(rack):
    content = os.urandom(16 << 20)
    (rack.folder / "content").write_bytes(content)
    target = rack.folder / "copy"
    words = ["curl", "--silent", "--fail", "--show-error", "--output", str(target), "http://n0:8000/content"]
    begun = time.monotonic()
    client(rack, words, ["python3", "-m", "http.server", "8000", "--directory", str(rack.folder)])
    if hashlib.sha256(target.read_bytes()).digest() != hashlib.sha256(content).digest():
        raise Failed("the copy differs")
    return f"{len(content) / (time.monotonic() - begun) / 1e6:.0f} MB/s", "-"


def several(rack, words):
    """Runs a command on this host that starts one program per seat."""
    ended = subprocess.run(words, env=rack.environment, capture_output=True, text=True, timeout=RUN_SECONDS_MAX,
                           check=False)
    if ended.returncode != 0:
        raise Failed(f"{words[0]} ended with {ended.returncode}: {(ended.stdout + ended.stderr).strip()[-300:]}")
    return ended.stdout


def torch(rack):
    several(rack, [rack.binary, "exec", "--seats", "n0..n2", "--net", "rack", "--", "python3", "-c", TORCH_PROGRAM])
    return "-", "-"


def mpich(rack):
    program = rack.folder / "mpi-sums"
    source = pathlib.Path(__file__).with_name("mpi-sums.c")
    subprocess.run(["mpicc.mpich", "-O1", "-o", str(program), str(source)], check=True)
    # Its ranks would use memory of the machine that they share.
    rack.environment |= {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "rack0"}
    words = ["mpiexec.mpich", "-np", "2", rack.binary, "exec", "--net", "rack", "--", str(program)]
    # MPICH 4.0 with TCP of UCX can stay in MPI_Finalize: one rank waits at the barrier of the launcher and does not read what the other waits for. On a
    # busy machine that is one of ten runs over the loopback interface, without a rack. The sums are complete before.
    process = subprocess.Popen(words, env=rack.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, stays = process.communicate(timeout=MPICH_SECONDS_MAX)[0], False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        output, stays = process.communicate(timeout=RUN_SECONDS_MAX)[0], True
    if output.count(" 0 wrong sums") != 2 or (process.returncode != 0 and not stays):
        raise Failed(f"mpiexec.mpich ended with {process.returncode}: {output.strip()[-300:]}")
    return "stays at end" if stays else "-", "-"


def has_torch():
    return subprocess.run(["python3", "-c", "import torch.distributed"], capture_output=True, check=False).returncode == 0


# Name, run, whether it is installed, and the least number of bytes on the links.
PROGRAMS = [
    ("ping", ping, lambda: shutil.which("ping"), 50 * 84),
    ("iperf3", iperf3, lambda: shutil.which("iperf3"), 1 << 20),
    ("curl", curl, lambda: shutil.which("curl"), 16 << 20),
    ("mpich", mpich, lambda: shutil.which("mpicc.mpich"), 1 << 20),
    ("torch, gloo", torch, has_torch, 1 << 20),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the command rackloom")
    parser.add_argument("--quick", action="store_true", help="one wire")
    arguments = parser.parse_args()
    binary = str(pathlib.Path(arguments.binary).resolve())
    refused = refusal(binary)
    if refused:
        print(f"not tried: {refused}")
        return 0
    present = [program for program in PROGRAMS if program[2]()]
    for name, *_ in PROGRAMS:
        if name not in [program[0] for program in present]:
            print(f"not tried: {name} is not installed")
    wires = ["shared-memory"] if arguments.quick else ["shared-memory", "udp", "packet"]
    failed = count = 0
    print(f"{'wire':14} {'loss':>4}  {'program':12} {'seconds':>8} {'rate':>14} {'by TCP':>7} {'by the fabric':>14}")
    for wire in wires:
        for loss in ("0%", "1%"):
            for name, run, _, least in present:
                count += 1
                begun, rate, by_tcp, again = time.monotonic(), "-", "-", "-"
                with tempfile.TemporaryDirectory(prefix="ip-") as folder:
                    rack, reason = None, None
                    try:
                        rack = Rack(binary, "star", wire, f"link: {{loss: {loss}}}\n", pathlib.Path(folder),
                                    ["--net", "rack"])
                        rate, by_tcp = run(rack)
                    except (Failed, OSError, RuntimeError, subprocess.SubprocessError) as error:
                        reason = str(error)
                    if rack:
                        links = rack.down()
                        again = str(sum(link["retransmitted"] for link in links))
                        carried = sum(link["bytes_on_wire"] for link in links)
                        if not reason and carried < least:
                            reason = f"{carried} bytes on the links, {least} expected"
                failed += reason is not None
                print(f"{wire:14} {loss:>4}  {name:12} {time.monotonic() - begun:8.1f} {rate:>14} {by_tcp:>7} {again:>14}"
                      + (f"\n    failed: {reason}" if reason else ""), flush=True)
    print(f"{count} runs, {failed} failed")
    return 1 if failed or not present else 0


if __name__ == "__main__":
    sys.exit(main())
