"""Experiments: the recorded results of claims about the Transformer. Nothing is run here."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import APIRouter, Depends

from regard.experiments.registry import recorded_results
from regard.serve.http.schemas import ERRORS
from regard.serve.service import admitted

router = APIRouter(
    prefix="/api/v1/experiments", dependencies=[Depends(admitted)], responses=ERRORS, tags=["experiments"]
)


@router.get("")
async def experiments() -> Any:
    """Every experiment with its claim, tables, charts and verdict, in English and Chinese."""
    return _document()


@cache
def _document() -> dict[str, Any]:
    return {"experiments": recorded_results()}
