#!/usr/bin/env python3
"""Runs unmodified RDMA programs between two seats of racks, and checks that they succeed over the links of the rack.

    scripts/verbs_programs.py target/release/rackloom              # all racks, wires and losses: some 15 minutes
    scripts/verbs_programs.py target/release/rackloom --quick      # one rack: a minute
    scripts/verbs_programs.py target/release/rackloom --pyverbs rdma-core/tests    # only the tests of pyverbs (package python3-pyverbs)

The programs are those of ibverbs-utils, perftest, rdmacm-utils, ucx-utils and libfabric-bin that are installed, and MPI programs over UCX; others are named as missing. Each must end with 0 at both sides and name no
other device, and the bytes that it moves must be on the links. Further runs lose a plane, and the peer, in the middle, also with a port per plane. The file `ibverbs` of the
build is beside the command. The exit code is 1 if a run failed. It needs Python 3 alone.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

RUN_SECONDS_MAX = 120
SHAPES = {
    "star": "{star: {nodes: 3, planes: 2}}",
    "ring": "{ring: {nodes: 3}}",
    "mesh": "{full-mesh: {nodes: 3}}",
}
PING_PONG = ["-d", "rackloom0", "-g", "1"]
PERFTEST = ["-d", "rackloom0", "-x", "1", "-F"]
# Program, arguments, and the least number of bytes that it moves in both directions together.
PROGRAMS = [
    (["ibv_rc_pingpong", "-c", "-n", "100", "-s", "65536", *PING_PONG], 2 * 100 * 65536),
    (["ibv_rc_pingpong", "-e", "-n", "100", *PING_PONG], 2 * 100 * 4096),
    (["ibv_ud_pingpong", "-n", "50", "-s", "1024", *PING_PONG], 2 * 50 * 1024),
    (["ibv_srq_pingpong", "-n", "100", "-q", "4", *PING_PONG], 100 * 4096),
    (["ib_write_bw", "-n", "100", "-s", "65536", *PERFTEST], 100 * 65536),
    (["ib_write_bw", "-n", "100", "-s", "65536", "-b", *PERFTEST], 2 * 100 * 65536),
    (["ib_read_bw", "-n", "100", "-s", "65536", *PERFTEST], 100 * 65536),
    (["ib_send_bw", "-n", "100", "-s", "65536", *PERFTEST], 100 * 65536),
    (["ib_send_bw", "-n", "100", "-s", "1024", "-b", *PERFTEST], 2 * 100 * 1024),
    (["ib_atomic_bw", "-n", "100", *PERFTEST], 100 * 8),
    (["ib_write_lat", "-n", "100", *PERFTEST], 2 * 100 * 2),
    (["ib_read_lat", "-n", "100", *PERFTEST], 100 * 2),
    (["ib_send_lat", "-n", "100", *PERFTEST], 2 * 100 * 2),
    (["ib_atomic_lat", "-n", "100", *PERFTEST], 100 * 8),
]
# Tests of ucx_perftest, and the least number of bytes of each. They run over connections and over datagrams.
UCX = [
    (["tag_lat", "-s", "8"], 2 * 100 * 8),
    (["tag_bw", "-s", "65536"], 100 * 65536),
    (["ucp_put_bw", "-s", "65536"], 100 * 65536),
    (["ucp_get", "-s", "65536"], 100 * 65536),
    (["ucp_fadd", "-s", "8"], 100 * 8),
    (["ucp_cswap", "-s", "8"], 100 * 8),
]
PROGRAMS += [(["env", f"UCX_TLS={transport}", "UCX_NET_DEVICES=rackloom0:1", "ucx_perftest", "-t", *test, "-n", "100", "-w", "10"],
              least) for transport in ("rc", "ud_verbs") for test, least in UCX]
# Programs that connect by the address of the seat: arguments of both sides, further ones of the server, further ones of the client.
CONNECTING = [
    (["rping", "-C", "10", "-v"], ["-s"], ["-c", "-a", "10.82.0.1"], 10 * 64),
    (["ucmatose", "-C", "20", "-S", "4096"], [], ["-s", "10.82.0.1"], 2 * 20 * 4096),
    (["ib_write_bw", "-R", "-n", "100", "-s", "65536", *PERFTEST], [], ["10.82.0.1"], 100 * 65536),
    (["ib_send_lat", "-R", "-n", "100", *PERFTEST], [], ["10.82.0.1"], 2 * 100 * 2),
    (["fi_pingpong", "-p", "verbs", "-e", "msg"], [], ["127.0.0.1"], 10 << 20),
]
# Events of a client whose server does not listen yet.
EARLY = ("REJECTED", "UNREACHABLE", "ADDR_ERROR", "Connection refused")
# Compiler and launcher of implementations of MPI, and the options by which they use UCX between all ranks.
MPI = {
    "openmpi": (["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "2", "--mca", "pml", "ucx"], {}),
    "mpich": (["mpiexec.mpich", "-np", "2"], {"MPIR_CVAR_NOLOCAL": "1"}),
}
MPI_BYTES = 2 * 8 * (1 << 20)
# Without loss, one datagram after another arrives. With loss a program that counts datagrams waits for ever.
NEEDS_NO_LOSS = ("ibv_ud_pingpong",)


# Runs a program, writes its exit code to a file, and stays until the end of its standard input: what a seat has counted leaves with its process.
STAY = '"$@"; echo $? >"$ENDED.new"; mv "$ENDED.new" "$ENDED"; cat'


class Rack:
    """A rack that is up for programs."""

    def __init__(self, binary, shape, wire, more, folder, options=()):
        self.binary, self.folder, self.options, self.processes = binary, folder, options, []
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
        file = folder / "rack.yaml"
        file.write_text(f"name: verbs\nshape: {SHAPES[shape]}\n{more}")
        self.command("up", str(file), "--seats", "programs", "--wire", wire)

    def command(self, *words):
        ended = subprocess.run([self.binary, *words], env=self.environment, capture_output=True, text=True,
                               timeout=RUN_SECONDS_MAX, check=False)
        if ended.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {ended.stderr.strip()}")
        return ended.stdout

    def ended(self, seat):
        return self.folder / f"{seat}.ended"

    def start(self, seat, words):
        environment = {**self.environment, "ENDED": str(self.ended(seat))}
        with open(self.folder / f"{seat}.output", "w", encoding="utf-8") as output:
            return subprocess.Popen([self.binary, "exec", "--seat", seat, *self.options, "--", "sh", "-c", STAY, "sh", *words],
                                    env=environment, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
                                    start_new_session=True)

    def end(self, seat, process, deadline):
        """Waits for the end of a program. Returns its exit code, that of its seat if it was killed, and its output."""
        while not self.ended(seat).exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        if self.ended(seat).exists():
            code = int(self.ended(seat).read_text())
        else:
            code = process.poll()
        return code, (self.folder / f"{seat}.output").read_text(errors="replace")

    def pair(self, words, meanwhile=None):
        """Runs a program on n0, and on n1 with the address of the first. Returns exit codes and outputs of both."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [*words, "-p", str(port)]
        server = self.start("n0", words)
        deadline = time.monotonic() + RUN_SECONDS_MAX
        while server.poll() is None and time.monotonic() < deadline:
            lines = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}", encoding="ascii")]
            if any(line[3] == "0A" and line[1].endswith(f":{port:04X}") for line in lines):
                break
            time.sleep(0.05)
        client = self.start("n1", [*words, "127.0.0.1"])
        if meanwhile:
            meanwhile(self)
        self.processes = [client, server]
        deadline = time.monotonic() + RUN_SECONDS_MAX
        return [self.end("n1", client, deadline), self.end("n0", server, deadline)]

    def connect(self, words, of_server, of_client):
        """Runs a program that connects by an address. The client starts again until the server listens."""
        server = self.start("n0", [*words, *of_server])
        deadline = time.monotonic() + RUN_SECONDS_MAX
        self.processes = [server]
        while True:
            self.ended("n1").unlink(missing_ok=True)
            client = self.start("n1", [*words, *of_client])
            self.processes.append(client)
            code, output = self.end("n1", client, deadline)
            is_early = any(event in output for event in EARLY)
            if code == 0 or not is_early or time.monotonic() > deadline:
                return [(code, output), self.end("n0", server, deadline)]
            client.stdin.close()
            client.wait()

    def down(self):
        """Takes the rack down. Returns the counters of its links."""
        report = self.folder / "report.json"
        self.command("down", "--json", str(report))
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        return json.loads(report.read_text())["links"]


def tool(words):
    """Returns the name of the program of a command, behind the variables of its environment."""
    return next(word for word in words if word != "env" and "=" not in word)


def run_mpi(binary, shape, wire, more, name, folder):
    """Runs a program of MPI whose ranks take the seats of a rack. Returns the reason why it failed, or None."""
    launcher, variables = MPI[name]
    program = folder / f"mpi-sums-{name}"
    source = pathlib.Path(__file__).with_name("mpi-sums.c")
    subprocess.run([f"mpicc.{name}", "-O1", "-o", str(program), str(source)], check=True)
    with tempfile.TemporaryDirectory(prefix="verbs-") as own:
        rack = Rack(binary, shape, wire, more, pathlib.Path(own))
        environment = {**rack.environment, **variables, "UCX_TLS": "rc,self", "UCX_NET_DEVICES": "rackloom0:1"}
        try:
            ended = subprocess.run([*launcher, binary, "exec", "--", str(program)], env=environment, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False)
        finally:
            # The switch has counted what it sent, also to seats that are free again.
            carried = sum(link["bytes_on_wire"] for link in rack.down())
        if ended.returncode != 0 or ended.stdout.count(" 0 wrong sums") != 2:
            return f"it ended with {ended.returncode}: {ended.stdout.strip()} {ended.stderr.strip()[-300:]}"
        return None if carried >= MPI_BYTES else f"{carried} bytes on the links, {MPI_BYTES} expected"


def run(binary, shape, wire, more, words, least, meanwhile=None, sides=None):
    """Runs one program on a rack of its own. Returns the reason why it failed, or None."""
    with tempfile.TemporaryDirectory(prefix="verbs-") as folder:
        rack = Rack(binary, shape, wire, more, pathlib.Path(folder))
        ends = []
        try:
            ends = rack.connect(words, *sides) if sides else rack.pair(words, meanwhile)
        finally:
            carried = sum(link["bytes_on_wire"] for link in rack.down())
        for (code, output), side in zip(ends, ("client", "server")):
            if code != 0:
                return f"{side} ended with {code}: {' / '.join(output.strip().splitlines()[-3:])}"
        return None if carried >= least else f"{carried} bytes on the links, {least} expected"


def loses_a_plane(rack):
    # These programs sleep for a second before their first write.
    time.sleep(2)
    rack.command("inject", "link", "plane 0", "--down", "--for", "1s")


def loses_its_peer(rack):
    time.sleep(2)
    rack.command("inject", "node", "n0", "--kill")


def run_pyverbs(binary, tests):
    """Runs the tests of pyverbs, both of whose sides are in one process, on each port of a seat. Returns the number of ports with failures."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="verbs-") as folder:
        rack = Rack(binary, "star", "shared-memory", "ports: per-plane\n", pathlib.Path(folder))
        try:
            for port in "1", "2":
                words = ["/usr/bin/python3", str(tests / "run_tests.py"), "--dev", "rackloom0", "--port", port, "--gid", "1"]
                ended = subprocess.run([binary, "exec", "--seat", "n0", "--", *words], env=rack.environment, capture_output=True, text=True,
                                       timeout=10 * RUN_SECONDS_MAX, check=False)
                failed += ended.returncode != 0
                print(f"pyverbs on port {port}: {' '.join(ended.stderr.strip().splitlines()[-3:])}", flush=True)
        finally:
            rack.down()
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the command rackloom")
    parser.add_argument("--quick", action="store_true", help="one rack, one wire, no loss")
    parser.add_argument("--pyverbs", type=pathlib.Path, metavar="FOLDER", help="run the tests of pyverbs in this folder of rdma-core, and nothing else")
    arguments = parser.parse_args()
    binary = str(pathlib.Path(arguments.binary).resolve())
    if arguments.pyverbs:
        return 1 if run_pyverbs(binary, arguments.pyverbs) else 0
    programs = [program for program in PROGRAMS if shutil.which(tool(program[0]))]
    for name in sorted({tool(words) for words, *_ in [*PROGRAMS, *CONNECTING] if not shutil.which(tool(words))}):
        print(f"not tried: {name} is not installed (packages ibverbs-utils, perftest, rdmacm-utils, ucx-utils, libfabric-bin)")
    shapes, wires, losses = list(SHAPES), ["shared-memory", "udp", "packet"], ["0%", "1%", "5%"]
    if arguments.quick:
        shapes, wires, losses = shapes[:1], wires[:1], losses[:1]
    cases = [(shape, wire, f"link: {{loss: {loss}}}\n", words, least, None, True)
             for shape in shapes for wire in wires for loss in losses for words, least in programs
             if loss == "0%" or tool(words) not in NEEDS_NO_LOSS]
    cases = [(*case, None) for case in cases]
    cases += [(shape, wire, f"link: {{loss: {loss}}}\n", words, least, None, True, (of_server, of_client))
              for shape in shapes for wire in wires for loss in losses
              for words, of_server, of_client, least in CONNECTING if shutil.which(tool(words))]
    if shutil.which("ib_write_bw"):
        lasting = ["ib_write_bw", "-s", "65536", "-D", "4", *PERFTEST]
        cases += [("star", wire, "", lasting, 1 << 20, loses_a_plane, True, None) for wire in wires]
        cases += [("star", wire, "", lasting, 0, loses_its_peer, False, None) for wire in wires]
        # Only the port of the lost plane fails.
        cases += [("star", wire, "ports: per-plane\n", [*lasting, "-i", port], least, loses_a_plane, port == "2", None)
                  for wire in wires for port, least in (("1", 0), ("2", 1 << 20))]
    failed = 0
    print(f"{'rack':6} {'wire':14} {'loss':14} {'seconds':>8}  program")
    for shape, wire, more, words, least, meanwhile, passes, sides in cases:
        begun = time.monotonic()
        try:
            reason = run(binary, shape, wire, more, words, least, meanwhile, sides)
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            reason, passes = str(error), True
        if not passes:
            reason = None if reason else "it succeeded although its peer was killed, or the plane of its port was lost"
        failed += reason is not None
        loss = more.partition("loss: ")[2].rstrip("}\n") or meanwhile.__name__.replace("_", " ")
        line = f"{shape:6} {wire:14} {loss:14} {time.monotonic() - begun:8.1f}  {' '.join(words)}"
        print(line + (f"\n       failed: {reason}" if reason else ""), flush=True)
    runs = len(cases)
    with tempfile.TemporaryDirectory(prefix="mpi-") as folder:
        for name in [] if arguments.quick else MPI:
            if not shutil.which(f"mpicc.{name}"):
                print(f"not tried: {name} is not installed (packages libopenmpi-dev, libmpich-dev)")
                continue
            for wire, loss in ((wire, loss) for wire in wires for loss in losses):
                begun = time.monotonic()
                try:
                    reason = run_mpi(binary, "star", wire, f"link: {{loss: {loss}}}\n", name, pathlib.Path(folder))
                except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                    reason = str(error)
                runs, failed = runs + 1, failed + (reason is not None)
                print(f"{'star':6} {wire:14} {loss:14} {time.monotonic() - begun:8.1f}  {name}"
                      + (f"\n       failed: {reason}" if reason else ""), flush=True)
    print(f"{runs} runs, {failed} failed")
    return 1 if failed or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
