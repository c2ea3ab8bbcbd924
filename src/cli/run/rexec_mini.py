"""Lets mini-swe-agent run its commands by rexec's shell:

    mini --environment-class rexec_mini.RexecEnvironment

It differs from mini-swe-agent's own class in the program that it starts, and in nothing else.
"""

import os
import subprocess

from minisweagent.environments import local

_HERE = os.path.dirname(os.path.abspath(__file__))
# The folder beside this one has the links to rexec-sh.
_SHELL = os.path.join(os.path.dirname(_HERE), "sh")

# Commands get the PYTHONPATH that mini-swe-agent would have had.
_path = os.environ.get("PYTHONPATH", "")
if _path == _HERE:
    del os.environ["PYTHONPATH"]
elif _path.startswith(_HERE + os.pathsep):
    os.environ["PYTHONPATH"] = _path[len(_HERE + os.pathsep) :]


class _Subprocess:
    """The module subprocess, but a command for the shell goes to rexec's."""

    def __getattr__(self, name):
        return getattr(subprocess, name)

    @staticmethod
    def Popen(*args, **options):  # noqa: N802, it stands for subprocess.Popen
        return subprocess.Popen(*args, **_with_shell(options))

    @staticmethod
    def run(*args, **options):
        return subprocess.run(*args, **_with_shell(options))


def _with_shell(options):
    return {**options, "executable": _SHELL} if options.get("shell") else options


local.subprocess = _Subprocess()


class RexecEnvironment(local.LocalEnvironment):
    """mini-swe-agent's local environment, whose commands run below rexec's host."""
