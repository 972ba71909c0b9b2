"""Cores and memory are counted as containers of either kind allow them."""

import pytest

from regard.doctor.cores import cgroup_quota, memory_limit, physical_cores, processor_name

MEMINFO = "MemTotal:       8192 kB\nMemFree:        4096 kB"


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{text}\n", encoding="utf-8")


def test_groups_of_the_second_version_above_the_process_count_too(tmp_path):
    write(tmp_path, "proc/self/cgroup", "0::/pod/box")
    write(tmp_path, "sys/fs/cgroup/pod/box/cpu.max", "max 100000")
    write(tmp_path, "sys/fs/cgroup/pod/cpu.max", "150000 100000")
    write(tmp_path, "sys/fs/cgroup/pod/box/memory.max", "max")
    write(tmp_path, "sys/fs/cgroup/pod/memory.max", "4096")
    write(tmp_path, "proc/meminfo", MEMINFO)
    assert cgroup_quota(tmp_path) == 1.5
    assert memory_limit(tmp_path) == 4096


def test_groups_of_the_first_version(tmp_path):
    write(tmp_path, "proc/self/cgroup", "4:memory:/box\n3:cpu,cpuacct:/box\n2:pids:/box")
    write(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1")
    write(tmp_path, "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "300000")
    write(tmp_path, "sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "50000")
    write(tmp_path, "sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712")
    write(tmp_path, "proc/meminfo", MEMINFO)
    assert cgroup_quota(tmp_path) == 6
    assert memory_limit(tmp_path) == 8192 * 1024


def test_hyperthreads_of_one_core_count_once(tmp_path):
    for core, siblings in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        write(tmp_path, f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list", siblings)
    assert physical_cores(frozenset(range(4)), tmp_path) == 2
    assert physical_cores(frozenset({0, 2}), tmp_path) == 1
    assert physical_cores(frozenset({0, 7}), tmp_path) is None


def test_the_processor_has_a_name(tmp_path):
    write(tmp_path, "proc/cpuinfo", "processor\t: 0\nmodel name\t: Abacus 3000\ncache size\t: 1 KB")
    assert processor_name(tmp_path) == "Abacus 3000"


@pytest.mark.parametrize("ask", [cgroup_quota, memory_limit, processor_name])
def test_other_systems_tell_nothing(tmp_path, ask):
    assert ask(tmp_path) is None
