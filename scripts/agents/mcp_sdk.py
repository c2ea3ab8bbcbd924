"""Calls every tool of `rexec mcp` with the protocol's official Python SDK, in each of its modes.

usage: mcp_sdk.py REXEC FOLDER

A host runs already, at REXEC_SOCKET. Prints what failed, and exits 1 then.
"""

import os
import re
import sys
import time
from pathlib import Path

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

REXEC, FOLDER = sys.argv[1:3]
# The handshake, the probe for the stateless revision, and that revision at once.
MODES = ["legacy", "auto", "2026-07-28"]
failed = 0
count = 0


def check(is_right, what, detail):
    global failed, count
    count += 1
    if not is_right:
        failed += 1
        print(f"  FAILED  python, {what}: {detail!r}")


async def call(client, tool, arguments, **more):
    result = await client.call_tool(tool, arguments, **more)
    return "".join(block.text for block in result.content), bool(result.is_error)


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == b""
    except OSError:
        return True


async def tools(client, mode):
    names = [tool.name for tool in (await client.list_tools()).tools]
    check(names == ["exec", "output", "write", "kill", "undo", "list", "check_host"], f"{mode}: tools", names)
    for tool, arguments, expected, is_error in [
        ("check_host", {}, r"HOST RUNNING\n", False),
        ("exec", {"command": "echo one; exit 7"}, r"one\n\[exit 7\]\n", True),
        ("exec", {"argv": ["no-such-program"]}, r"rexec: no-such-program: not found\n(?s:.*)\[exit 127\]\n", True),
        ("exec", {"command": "true", "cwd": "/"}, r"rexec: exec has no argument `cwd`\n", True),
        ("undo", {"run": 1}, r"(?s:.*)nobody is there to say(?s:.*)", True),
        ("list", {}, r"nothing runs\n", False),
    ]:
        text, was_error = await call(client, tool, arguments)
        check(re.fullmatch(expected, text) and was_error == is_error, f"{mode}: {tool} {arguments}", text)


async def background(client, mode):
    command = {"command": "echo ready; cat; sleep 60", "background": True, "keep_stdin": True}
    text, _ = await call(client, "exec", command)
    check(text.startswith("ready\n[runs in the background, run "), f"{mode}: background", text)
    run = int(re.search(r"run (\d+)", text)[1])
    text, _ = await call(client, "write", {"run": run, "text": "typed\n", "wait": 1})
    check(text.startswith("typed\n"), f"{mode}: write", text)
    text, _ = await call(client, "output", {"run": run, "after": 0})
    check(text.startswith("ready\ntyped\n"), f"{mode}: output", text)
    text, _ = await call(client, "kill", {"run": run})
    check("[exit 143]" in text, f"{mode}: kill", text)


async def together(client, mode):
    """Each of eight commands waits until all have begun."""
    found = {}

    async def one(n):
        command = f"touch {mode}.{n}; while [ $(ls {mode}.[0-7] | wc -l) -lt 8 ]; do sleep 0.05; done; echo {n}"
        found[n], _ = await call(client, "exec", {"command": command})

    async with anyio.create_task_group() as group:
        for n in range(8):
            group.start_soon(one, n)
    check(found == {n: f"{n}\n[exit 0]\n" for n in range(8)}, f"{mode}: eight at once", found)


async def progress_and_cancel(client, mode):
    seen = []

    async def told(_progress, _total, message):
        seen.append(message)

    await call(client, "exec", {"command": "echo a; sleep 0.6; echo b; sleep 0.6"}, progress_callback=told)
    check(seen == ["a", "b"], f"{mode}: progress", seen)
    with anyio.move_on_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(call, client, "exec", {"command": f"echo $$ >{mode}.pid; exec sleep 77"})
            number = Path(FOLDER, f"{mode}.pid")
            while not (number.exists() and number.read_text().endswith("\n")):
                await anyio.sleep(0.02)
            group.cancel_scope.cancel()
    end = time.monotonic() + 30
    while not is_gone(number.read_text().strip()) and time.monotonic() < end:
        await anyio.sleep(0.02)
    check(is_gone(number.read_text().strip()), f"{mode}: a cancelled command ends", None)


async def main():
    env = {"REXEC_SOCKET": os.environ["REXEC_SOCKET"]}
    for mode in MODES:
        server = StdioServerParameters(command=REXEC, args=["mcp"], env=env, cwd=FOLDER)
        async with Client(stdio_client(server), mode=mode) as client:
            for part in [tools, background, together, progress_and_cancel]:
                await part(client, mode)


anyio.run(main)
print(f"python: {count - failed} of {count} checks are right")
sys.exit(failed > 0)
