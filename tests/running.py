import os
import subprocess
import sys

import numpy as np


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


def stored(folder):
    """The count in the checkpoint of a folder, 0 if there is none."""
    path = folder / "moments.npz"
    if not path.exists():
        return 0
    with open(path, "rb") as opened, np.load(opened) as file:
        return int(file["arr_1"])
