"""Every experiment that is named is there, and says in two languages what it claims."""

import re
import subprocess
import sys

import pytest

from regard.errors import RequestError
from regard.experiments.registry import NAMES, find


@pytest.mark.parametrize("name", NAMES)
def test_a_name_finds_its_experiment(name):
    experiment = find(name)
    assert experiment.name == name
    assert re.search("[a-z]", experiment.claim.en)
    assert re.search("[\u4e00-\u9fff]", experiment.claim.zh)


def test_a_wrong_name_is_mended():
    with pytest.raises(RequestError, match="did you mean scale"):
        find("scales")
    with pytest.raises(RequestError, match="there are scale"):
        find("nothing like it")


def test_names_and_findings_need_no_torch():
    modules = "regard.experiments.registry, regard.experiments.report, regard.experiments.picture"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
