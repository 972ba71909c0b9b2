"""Every experiment that is named is there, and says in two languages what it claims."""

import re
import subprocess
import sys

import pytest

from regard.errors import RequestError
from regard.experiments.registry import NAMES, find_experiment
from tests.refusals import refused


@pytest.mark.parametrize("name", NAMES)
def test_a_name_finds_its_experiment(name):
    experiment = find_experiment(name)
    assert experiment.name == name
    assert re.search("[a-z]", experiment.claim.en)
    assert re.search("[\u4e00-\u9fff]", experiment.claim.zh)


def test_a_wrong_name_is_refused():
    with refused("unknown_experiment", "scales", "did you mean scale", error=RequestError):
        find_experiment("scales")
    with refused("unknown_experiment", ", ".join(NAMES)):
        find_experiment("nothing like it")


def test_names_and_findings_need_no_torch():
    modules = "regard.experiments.registry, regard.experiments.report, regard.experiments.picture"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
