"""The command line's cache of compiled programs and its devices."""

import os
import subprocess
import sys
import time
from pathlib import Path

import matplotlib
import pytest

from noisy_jax.command import compiled

STUDY = ("-m", "noisy_jax", "--seeds", "2", "--horizons", "8")
MATPLOTLIB = matplotlib.get_cachedir()  # its own cache, which takes seconds to make
LIBRARY = ("-c", "import noisy_jax as nj, jax; nj.streams.linear(jax.random.key(0), 8, 2)")


def run(folder, cache, command=STUDY, **environment):
    """What a Python process in a folder prints, with its errors, and the programs in its cache."""
    kept = {n: v for n, v in os.environ.items() if n != "JAX_COMPILATION_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=True,
        env={**kept, "XDG_CACHE_HOME": str(cache), "MPLCONFIGDIR": MATPLOTLIB,
             "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )  # fmt: skip
    return done.stdout, done.stderr, sorted(Path(cache).glob("noisy_jax/compiled-*/*-cache"))


@pytest.fixture
def settings(monkeypatch, tmp_path):
    """What `keep_compiled` sets, of JAX, with the user's cache folder at `tmp_path`."""
    changed = {}
    monkeypatch.setattr(compiled.jax.config, "update", changed.__setitem__)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv(compiled.LOGGED, compiled.FATAL)
    return changed


@pytest.mark.slow
def test_a_second_run_compiles_nothing_and_finds_the_same(tmp_path):
    first, errors, programs = run(tmp_path, tmp_path)
    assert first.startswith("Study linear; results go to noisy_jax_results/\n")
    assert "not kept" not in errors
    assert len(programs) > 3
    (table,) = (tmp_path / "noisy_jax_results").glob("*.csv")
    results = table.read_bytes()
    dates = [file.stat().st_mtime_ns for file in programs]
    programs[0].write_bytes(programs[0].read_bytes()[:50])  # as where a disk was full
    second, errors, now = run(tmp_path, tmp_path)
    assert (second, now) == (first, programs)
    assert [file.stat().st_mtime_ns for file in now[1:]] == dates[1:]
    assert "ache" not in errors
    assert "Machine" not in errors  # an error of jaxlib for each program that it takes
    assert table.read_bytes() == results


@pytest.mark.long  # tests/test_house.py: nothing of the library imports the room of commands
def test_the_library_keeps_nothing(tmp_path):
    assert run(tmp_path, tmp_path, LIBRARY) == ("", "", [])
    assert not (tmp_path / "noisy_jax").exists()


def test_a_folder_that_cannot_be_written_is_one_line(settings, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    compiled.keep_compiled()
    assert not settings
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("compiled programs are not kept: ")
    assert f"{tmp_path}/file/noisy_jax" in line


def test_keeps_programs_for_a_month(settings, tmp_path):
    folder = tmp_path / "noisy_jax" / f"compiled-{compiled.processor()}"
    folder.mkdir(parents=True)
    for name in ("new-cache", "old-cache", "old.txt"):
        (folder / name).write_text("")
    for name in ("old-cache", "old.txt"):
        os.utime(folder / name, (time.time() - 31 * 86400,) * 2)
    compiled.keep_compiled()
    assert sorted(file.name for file in folder.iterdir()) == ["new-cache", "old.txt"]
    assert settings["jax_compilation_cache_dir"] == str(folder)


@pytest.mark.parametrize("folder", ["/elsewhere", ""])
def test_the_folder_that_jax_is_given_stays(settings, tmp_path, monkeypatch, folder):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", folder)
    compiled.keep_compiled()
    assert not settings
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("version", "level", "kept"),
    [((0, 10, 1), "1", False), ((0, 10, 1), "3", True), ((0, 10, 2), "1", True)],
)
def test_versions_of_jaxlib_that_print_errors_keep_nothing(
    settings, monkeypatch, version, level, kept
):
    monkeypatch.setattr(compiled.jaxlib.version, "__version_info__", version)
    monkeypatch.setenv(compiled.LOGGED, level)
    compiled.keep_compiled()
    assert bool(settings) == kept


def test_each_core_is_a_device_unless_their_number_is_given(settings, monkeypatch):
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES", raising=False)
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    compiled.use_all_cores()
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "1")
    compiled.use_all_cores()
    assert not settings
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 5}, raising=False)
    compiled.use_all_cores()
    assert settings == {"jax_num_cpu_devices": 3}


@pytest.mark.parametrize("given", ["", "--xla_backend_extra_options=xla_a=b"])
def test_xlas_options_are_added_to_those_of_the_user_or_left(settings, monkeypatch, given):
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to=x {given}".strip())
    compiled.inline_loops()
    first, second = os.environ["XLA_FLAGS"].split()
    assert first == "--xla_dump_to=x"
    assert second.startswith(given or "--xla_backend_extra_options=xla_cpu_small_while_loop")


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are those of POSIX")
def test_a_folder_of_others_is_not_used(settings, tmp_path, capsys):
    folder = tmp_path / "noisy_jax" / f"compiled-{compiled.processor()}"
    compiled.keep_compiled()
    assert folder.stat().st_mode & 0o777 == 0o700
    settings.clear()
    folder.chmod(0o777)
    compiled.keep_compiled()
    assert not settings
    message = f"compiled programs are not kept: others may write to the folder {folder}\n"
    assert capsys.readouterr().err == message


def test_without_a_home_programs_are_not_kept(settings, monkeypatch, capsys):
    def none():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # must be ignored
    monkeypatch.setattr(Path, "home", none)
    compiled.keep_compiled()
    assert not settings
    assert "not kept: Could not determine home" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("platform", "folder"),
    [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
)
def test_the_cache_is_where_the_platform_wants_it(monkeypatch, tmp_path, platform, folder):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert compiled.user_cache() == tmp_path / folder
