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


# --- layouts of control groups ----------------------------------------------------------------------------


def mountinfo(*mounts):
    """Lines of mountinfo: (kind, controllers, group that is mounted, where)."""
    return "\n".join(
        f"3{i} 25 0:{i} {group} {where} rw,nosuid - {kind} {kind} rw{controllers and ',' + controllers}"
        for i, (kind, controllers, group, where) in enumerate(mounts)
    )


def test_every_group_above_a_nested_one_counts(tmp_path, write, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    write("proc/self/cgroup", "0::/kubepods/pod/box/job")
    write("proc/self/mountinfo", mountinfo(("cgroup2", "", "/", "/sys/fs/cgroup")))
    write("proc/meminfo", MEMINFO)
    assert usable_cores(tmp_path) == 64
    for group, quota, memory, expected in (
        ("kubepods", "1600000 100000", "7000", (16, 7000)),
        ("kubepods/pod", "200000 100000", "5000", (2, 5000)),
        ("kubepods/pod/box", "max 100000", "6000", (2, 5000)),
        ("kubepods/pod/box/job", "400000", "max", (2, 5000)),
    ):
        write(f"sys/fs/cgroup/{group}/cpu.max", quota)
        write(f"sys/fs/cgroup/{group}/memory.max", memory)
        assert (usable_cores(tmp_path), total_memory(tmp_path)) == expected


@pytest.mark.parametrize("where", ["/sys/fs/cgroup/cpu,cpuacct", "/cgroups/processor"])
def test_a_container_of_v1_sees_its_part_of_the_host_s_groups(tmp_path, write, where):
    """docker run --cpus 2, and a group of half a core inside."""
    write("proc/self/cgroup", "4:memory:/docker/abc/job\n3:cpu,cpuacct:/docker/abc/job\n0::/docker/abc")
    memory = ("cgroup", "memory", "/docker/abc", "/sys/fs/cgroup/memory")
    write("proc/self/mountinfo", mountinfo(("cgroup", "cpu,cpuacct", "/docker/abc", where), memory))
    write("proc/meminfo", MEMINFO)
    write(f"{where[1:]}/cpu.cfs_quota_us", "200000")
    write(f"{where[1:]}/cpu.cfs_period_us", "100000")
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "6000")
    assert (core_quota(tmp_path), total_memory(tmp_path)) == (2, 6000)
    write(f"{where[1:]}/job/cpu.cfs_quota_us", "50000")
    write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000")
    assert (core_quota(tmp_path), total_memory(tmp_path)) == (0.5, 5000)


@pytest.mark.parametrize("told", [True, False])
def test_a_hybrid_of_both_versions(tmp_path, write, told):
    """Controllers are in v1 or in v2, which is mounted beside it."""
    write("proc/self/cgroup", "5:memory:/user\n1:name=systemd:/user\n0::/user/box")
    if told:
        unified = ("cgroup2", "", "/", "/sys/fs/cgroup/unified")
        write(
            "proc/self/mountinfo",
            mountinfo(("cgroup", "memory", "/", "/sys/fs/cgroup/memory"), unified),
        )
    write("proc/meminfo", MEMINFO)
    write("sys/fs/cgroup/memory/user/memory.limit_in_bytes", "4000")
    write("sys/fs/cgroup/unified/user/cpu.max", "300000 100000")
    assert (core_quota(tmp_path), total_memory(tmp_path)) == (3, 4000)


def test_a_process_outside_of_its_namespace_has_the_limits_that_it_sees(tmp_path, write):
    write("proc/self/cgroup", "0::/../other")
    write("sys/fs/cgroup/cpu.max", "250000 100000")
    assert core_quota(tmp_path) == 2.5


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("0::/box", "sys/fs/cgroup/box/cpuset.cpus.effective"),
        ("7:cpuset:/box", "sys/fs/cgroup/cpuset/box/cpuset.effective_cpus"),
        ("7:cpuset:/box/inner", "sys/fs/cgroup/cpuset/box/cpuset.cpus"),
    ],
)
def test_sets_of_cores_are_counted(tmp_path, write, monkeypatch, line, file):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    write("proc/self/cgroup", line)
    for cores, n_cores in (("0-3,8,10-11", 7), ("5", 1), ("", 64)):
        write(file, cores)
        assert usable_cores(tmp_path) == n_cores


def test_what_cannot_be_read_is_no_limit(tmp_path, write):
    write("proc/self/cgroup", "0::/")
    write("proc/self/mountinfo", "nonsense\n1 2 3 - cgroup2")
    for text in ("", "max", "max 100000", "many 100000"):
        write("sys/fs/cgroup/cpu.max", text)
        assert core_quota(tmp_path) is None


def test_torch_keeps_to_the_quota(tmp_path, write):
    """In a process of its own: torch has 8 threads, as on a machine with 8 cores."""
    write("proc/self/cgroup", "0::/")
    write("sys/fs/cgroup/cpu.max", "100000 100000")
    code = (
        "import sys, torch; from pathlib import Path; from regard.host import *; torch.set_num_threads(8)\n"
        "root = Path(sys.argv[1]); print(torch_threads(root), torch.get_num_threads())\n"
        "limit_torch_threads(root); print(torch.get_num_threads())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "8", "1"]
