"""More machines than one, by Ray: a corpus through many workers, replicas of a server behind one address.

Nothing here imports Ray before it is used: `pip install 'regard[scale]'` brings it.
"""

from regard.scale.corpus import Outcome, translate
from regard.scale.order import Order

__all__ = ["Order", "Outcome", "translate"]
