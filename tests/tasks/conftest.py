import pytest

from tests.tasks.translators import subword_model


@pytest.fixture(scope="session", autouse=True)
def _conversions_are_kept_elsewhere(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def subwords():
    return subword_model()
