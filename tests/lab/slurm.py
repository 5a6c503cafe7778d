"""Starts a real Slurm on one machine from unpacked packages. Nothing is installed, and all files are removed."""

import contextlib
import os
import secrets
import socket
import subprocess
import time
from pathlib import Path

import pytest

NEEDED = (
    "usr/sbin/munged",
    "usr/sbin/slurmctld-wlm",
    "usr/sbin/slurmd-wlm",
    "usr/sbin/slurmstepd-wlm",
    "usr/bin/sbatch",
)

HOW = (
    "no unpacked Slurm: apt-get download munge libmunge2 slurmctld slurmd slurm-client slurm-wlm-basic-plugins libhwloc15; "
    "dpkg -x each of them into a folder; name it in LEMMATA_SLURM"
)

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={here}/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
PluginDir={plugins}
SlurmctldPort={port}
SlurmdPort={next_port}
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/slurmd.pid
SlurmctldLogFile={here}/slurmctld.log
SlurmdLogFile={here}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=500 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@contextlib.contextmanager
def slurm(here: Path, monkeypatch):
    """Start the batch system and put its commands on the path."""
    root = Path(os.environ.get("LEMMATA_SLURM", "/nowhere"))
    if not all((root / name).exists() for name in NEEDED) or os.getuid() != 0:
        pytest.skip(HOW)
    libraries = root / "usr/lib/x86_64-linux-gnu"
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{libraries}:{libraries}/slurm-wlm")
    monkeypatch.setenv("SLURM_CONF", str(here / "slurm.conf"))
    monkeypatch.setenv("PATH", f"{root}/usr/bin:{os.environ['PATH']}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    host = socket.gethostname().split(".")[0]
    where = {
        "here": here,
        "host": host,
        "plugins": f"{libraries}/slurm-wlm",
        "port": port,
        "next_port": port + 1,
    }
    here.mkdir()
    here.chmod(0o755)
    (here / "slurm.conf").write_text(CONFIGURATION.format(**where))
    (here / "state").mkdir()
    (here / "key").write_bytes(secrets.token_bytes(1024))
    (here / "key").chmod(0o600)
    munge = [
        f"--{name}={here}/{file}"
        for name, file in (
            ("key-file", "key"),
            ("socket", "munge.sock"),
            ("pid-file", "pid"),
            ("log-file", "log"),
            ("seed-file", "seed"),
        )
    ]
    commands = (
        [f"{root}/usr/sbin/munged", "--foreground", "--force", *munge],
        [f"{root}/usr/sbin/slurmctld-wlm", "-D"],
        [f"{root}/usr/sbin/slurmd-wlm", "-D", "-N", host, "-d", f"{root}/usr/sbin/slurmstepd-wlm"],
    )
    daemons = []
    try:
        for command in commands:
            daemons.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            time.sleep(1)
        deadline = time.time() + 60
        while (
            "idle" not in subprocess.run(["sinfo", "-h"], capture_output=True, text=True, check=False).stdout
        ):
            assert time.time() < deadline, "Slurm does not start"
            time.sleep(0.5)
        yield
    finally:
        subprocess.run(["scancel", "--user=root"], check=False)
        time.sleep(1)
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(20)
