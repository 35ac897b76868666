"""Kernels that execute pages, as forks of the process that builds them: all modules are imported once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from importlib import import_module
from importlib.metadata import EntryPoint
from multiprocessing import get_context
from typing import Any

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner


class Fork:
    """A forked kernel with the methods of `subprocess.Popen` that its provisioner uses."""

    stdin = stdout = stderr = None

    def __init__(self, command: list[str], cwd: str | None, env: dict[str, str]) -> None:
        self._process = get_context("fork").Process(target=serve, args=(command, cwd, env))
        self._process.start()
        self.pid = self._process.pid
        self.kill, self.terminate = self._process.kill, self._process.terminate

    def poll(self) -> int | None:
        """Return the exit code, or None while the kernel runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end of the kernel, and return its exit code."""
        self._process.join(timeout)
        return self._process.exitcode

    def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel if it runs."""
        if self.pid and self.poll() is None:
            os.kill(self.pid, signum)


def serve(command: list[str], cwd: str | None, env: dict[str, str]) -> None:
    """Run a kernel with the options of the command `python -m ipykernel_launcher -f FILE`."""
    from ipykernel.kernelapp import IPKernelApp

    # without this, signals to the kernel would wake the loop of the parent
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    asyncio.set_event_loop(asyncio.new_event_loop())
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd or ".")
    sys.argv = [command[2]]
    options = [*command[3:], f"--IPKernelApp.parent_handle={os.getppid()}", "--log-level=ERROR"]
    IPKernelApp.launch_instance(options)


class ForkProvisioner(LocalProvisioner):
    """Provisioner of kernels that are forks."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Fork a kernel, and return the addresses of its sockets."""
        self.process = Fork(cmd, kwargs.get("cwd"), kwargs.get("env") or dict(os.environ))
        self.pid, self.cwd = self.process.pid, kwargs.get("cwd")
        return self.connection_info


IMPORTED = ("ipykernel.kernelapp", "ipykernel.zmqshell", "matplotlib.pyplot", "pandas", "scipy.optimize")


def use() -> None:
    """Import what pages import, and make all new kernels of this process and its children forks of it."""
    # read by Matplotlib when it is imported; a kernel would set it
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    for name in IMPORTED:
        import_module(name)
    name, target = "local-provisioner", f"{__name__}:{ForkProvisioner.__name__}"
    entry = EntryPoint(name, target, KernelProvisionerFactory.GROUP_NAME)
    KernelProvisionerFactory.instance().provisioners[name] = entry
