"""Cores and memory are counted as control groups of either version allow them."""

import os
import platform
import subprocess
import sys

import pytest

from regard.host import (
    core_quota,
    default_threads,
    driver_version,
    free_memory,
    physical_cores,
    processor_name,
    total_memory,
    usable_cores,
)

MEMINFO = "MemTotal:       8192 kB\nMemFree:        1024 kB\nMemAvailable:   4096 kB"


@pytest.fixture
def write(tmp_path):
    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n", encoding="utf-8")

    return write


def test_v2_groups_above_the_process_count_too(tmp_path, write):
    write("proc/self/cgroup", "0::/pod/box")
    write("sys/fs/cgroup/pod/box/cpu.max", "max 100000")
    write("sys/fs/cgroup/pod/cpu.max", "150000 100000")
    write("sys/fs/cgroup/pod/box/memory.max", "max")
    write("sys/fs/cgroup/pod/memory.max", "4096")
    write("proc/meminfo", MEMINFO)
    assert core_quota(tmp_path) == 1.5
    assert total_memory(tmp_path) == 4096


def test_v1_groups(tmp_path, write):
    write("proc/self/cgroup", "4:memory:/box\n3:cpu,cpuacct:/box\n2:pids:/box")
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1")
    write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "300000")
    write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "50000")
    write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712")
    write("proc/meminfo", MEMINFO)
    assert core_quota(tmp_path) == 6
    assert total_memory(tmp_path) == 8192 * 1024
    write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "5000")
    write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "3000")
    write("sys/fs/cgroup/memory/box/memory.stat", "inactive_file 500\ntotal_inactive_file 700")
    assert total_memory(tmp_path) == 5000
    assert free_memory(root=tmp_path) == 2700


def test_hyperthreads_of_one_core_count_once(tmp_path, write):
    for core, siblings in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        write(f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list", siblings)
    assert physical_cores(frozenset(range(4)), tmp_path) == 2
    assert physical_cores(frozenset({0, 2}), tmp_path) == 1
    assert physical_cores(frozenset({0, 7}), tmp_path) is None


def test_threads_stay_within_the_affinity_the_quota_and_the_environment(tmp_path, write, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 5}, raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for setting, n_threads in ((None, 3), ("2", 2), ("16", 3), ("0", 1), ("4,2", 3)):
        if setting is not None:
            monkeypatch.setenv("OMP_NUM_THREADS", setting)
        assert (default_threads(tmp_path), usable_cores(tmp_path)) == (n_threads, 3)
    write("proc/self/cgroup", "0::/")
    for quota, n_cores in (("150000", 2), ("900000", 3), ("1000", 1)):
        write("sys/fs/cgroup/cpu.max", f"{quota} 100000")
        assert (default_threads(tmp_path), usable_cores(tmp_path)) == (n_cores, n_cores)


def test_without_an_affinity_all_cores_are_usable(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert usable_cores(tmp_path) == 7


def test_a_container_has_no_more_free_memory_than_its_limit(tmp_path, write):
    write("proc/meminfo", MEMINFO)
    write("proc/self/cgroup", "0::/")
    assert free_memory(root=tmp_path) == 4096 * 1024
    write("sys/fs/cgroup/memory.max", "max")
    write("sys/fs/cgroup/memory.current", "3000000")
    write("sys/fs/cgroup/memory.stat", "anon 2000000\ninactive_file 1000000")
    assert free_memory(root=tmp_path) == 4096 * 1024
    write("sys/fs/cgroup/memory.max", "4000000")
    assert free_memory(root=tmp_path) == 2_000_000


def test_half_of_the_memory_counts_as_free_where_the_system_does_not_say(tmp_path):
    assert free_memory(root=tmp_path) > 1 << 20


def test_the_processor_has_a_name(tmp_path, write):
    write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Abacus 3000\ncache size\t: 1 KB")
    assert processor_name(tmp_path) == "Abacus 3000"


@pytest.mark.parametrize("question", [core_quota, total_memory, processor_name, driver_version])
def test_other_systems_say_nothing(tmp_path, question):
    assert question(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024", "550.54.15"),
        ("NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build", "570.86.10"),
        ("something else", "unknown"),
    ],
)
def test_the_drivers_version_is_read_from_the_kernel_module(tmp_path, write, text, version):
    write("proc/driver/nvidia/version", f"NVRM version: {text}")
    assert driver_version(tmp_path) == version


@pytest.mark.parametrize("setting", ["keep_freed_memory", "share_freed_memory"])
def test_the_allocator_is_set_in_a_process_that_uses_glibc(setting):
    code = f"from regard.host import {setting}; print({setting}())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(platform.libc_ver()[0] == "glibc")
