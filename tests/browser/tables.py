"""The numbers that a page shows as a table."""

import numpy as np


def numbers_on(tab):
    """The cells, row by row; a masked one is NaN."""
    rows = [row.locator("td").all_inner_texts() for row in tab.locator(".table tbody tr").all()]
    return np.array([[np.nan if t == "–" else float(t.replace("−", "-")) for t in row] for row in rows])
