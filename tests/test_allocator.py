"""Settings of the C library, tried in processes of their own: they hold for as long as one runs."""

import platform
import subprocess
import sys

import pytest

GLIBC = platform.libc_ver()[0] == "glibc"


@pytest.mark.parametrize("setting", ["keep_freed_memory", "share_freed_memory"])
def test_a_setting_is_made_where_it_can_be(setting):
    code = f"from regard.allocator import {setting}; print({setting}())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(GLIBC)
