"""Several machines, through Ray: translate a corpus with many workers, or serve replicas at one address.

Nothing here imports Ray before it is used; `pip install 'regard[scale]'` installs it.
"""

from regard.scale.corpus import CorpusResult, translate
from regard.scale.workers import WorkerSettings

__all__ = ["CorpusResult", "WorkerSettings", "translate"]
