"""The numbers that a page shows as a table, or saves as one."""

import csv
import io

import numpy as np


def saved_csv(tab, folder):
    """Head and rows of what the page saves."""
    with tab.expect_download() as got:
        tab.click("#save-csv")
    got.value.save_as(folder / "numbers.csv")
    head, *rows = csv.reader(io.StringIO((folder / "numbers.csv").read_text("utf-8-sig"), newline=""))
    assert all(len(row) == len(head) for row in rows)
    return head, rows


def numbers_on(tab):
    """The cells, row by row; a masked one is NaN."""
    rows = [row.locator("td").all_inner_texts() for row in tab.locator(".table tbody tr").all()]
    return np.array([[np.nan if t == "–" else float(t.replace("−", "-")) for t in row] for row in rows])
