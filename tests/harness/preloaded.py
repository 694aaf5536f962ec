"""Programs for a Python with torch, each in a fork of a process that has imported the libraries once:
an import of torch computes for a second and more, and a test file has several checks."""
import atexit
import functools
import json
import subprocess
import tempfile

SERVER = """
import importlib, json, os, sys, traceback

def run(asked):
    for path, to in ((asked["out"], 1), (asked["err"], 2)):
        os.dup2(os.open(path, os.O_WRONLY), to)
    code = 0
    try:
        os.chdir(asked["cwd"])
        exec(compile(asked["code"], "<program>", "exec"), {"__name__": "__main__"})
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

for line in sys.stdin:
    asked = json.loads(line)
    for name in asked["modules"]:
        importlib.import_module(name)
    pid = os.fork()
    if pid == 0:
        run(asked)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@functools.cache
def server(python):
    """A Python that forks for each program. It ends with its stdin, when this process ends."""
    process = subprocess.Popen([python, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)

    def end():
        process.stdin.close()
        process.wait()

    atexit.register(end)
    return process


def run_code(python, code, cwd=".", modules=("torch",)):
    """Works as subprocess.run([python, "-c", code]), captured as text. The server imports `modules`
    before the fork, and keeps them for the next program; they may start no thread."""
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        process = server(python)
        process.stdin.write(json.dumps({"code": code, "cwd": str(cwd), "modules": modules,
                                        "out": out.name, "err": err.name}) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            raise AssertionError(f"the Python for programs with {modules} ended: {process.wait()}")
        return subprocess.CompletedProcess([python, code], int(answer), out.read(), err.read())
