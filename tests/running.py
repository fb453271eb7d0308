import os
import subprocess
import sys


def printed(*arguments, **environment):
    """What a Python process prints, which must end well."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.check_output(command, env=os.environ | environment, text=True)


def outputs(*running):
    """What each process printed; a hang fails the test, and so does a process that does."""
    try:
        printed = [process.communicate(timeout=300)[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.communicate()
    assert [process.returncode for process in running] == [0] * len(running), "\n".join(printed)
    return printed
