"""Routes for operators: liveness, readiness, metrics, and the list of routes."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from regard.serve.http.dependencies import state_of

router = APIRouter(tags=["operations"])


@router.get("/livez")
async def live() -> Any:
    """Whether the process responds."""
    return {"status": "live"}


@router.get("/readyz")
async def ready(request: Request) -> Response:
    """Whether the server accepts requests: models are loaded, and it is not shutting down."""
    if state_of(request).executor.draining:
        return JSONResponse({"status": "shutting_down"}, 503, {"Retry-After": "5"})
    return JSONResponse({"status": "ready", "models": [each.id for each in state_of(request).models]})


@router.get("/v2/health/live")
async def v2_live() -> Any:
    """`/livez` for clients of the Open Inference Protocol."""
    return {"live": True}


@router.get("/v2/health/ready")
async def v2_ready(request: Request) -> Response:
    """`/readyz` for clients of the Open Inference Protocol."""
    is_ready = not state_of(request).executor.draining
    return JSONResponse({"ready": is_ready}, 200 if is_ready else 503)


@router.get("/v2/models/{model}/ready")
async def v2_model_ready(request: Request, model: str) -> Response:
    """Whether a model accepts requests, for clients of the Open Inference Protocol."""
    name, is_ready = state_of(request).models.named(model).id, not state_of(request).executor.draining
    return JSONResponse({"name": name, "ready": is_ready}, 200 if is_ready else 503)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Metrics for Prometheus."""
    return Response(state_of(request).metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Every route, as a plain page."""
    return HTMLResponse(_page(request.app.openapi()))


def _page(document: dict[str, Any]) -> str:
    rows = [
        f"<tr><td>{method.upper()}</td><td><code>{escape(path)}</code></td>"
        f"<td>{escape(route.get('description', ''))}</td></tr>"
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    ]
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<link rel="icon" href="data:,"><h1>{title}</h1>'
        '<p>Fields and answers: <a href="/openapi.json">/openapi.json</a>.</p>'
        f"<table><tr><th>Method</th><th>Path</th><th>What it does</th></tr>{''.join(rows)}</table></html>"
    )
