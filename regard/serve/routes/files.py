"""LibreTranslate's way with files: one is sent, and its translation can be fetched for a while."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, Response

from regard.serve.files import FORMATS, kind_of, renamed, text_of
from regard.serve.http.errors import bad_value, validation_refusal
from regard.serve.service import bearer, service_of
from regard.serve.translating import Asked, check_texts
from regard.serve.work.job import Job

router = APIRouter(tags=["LibreTranslate"])


class FileForm(BaseModel):
    """What `/translate_file` is asked, beside the file."""

    source: str = Field(min_length=1, max_length=32)
    target: str = Field(min_length=1, max_length=32)


_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["file", "source", "target"],
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "source": {"type": "string"},
        "target": {"type": "string"},
        "api_key": {"type": "string"},
    },
}


@router.post(
    "/translate_file",
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _BODY}}}},
)
async def translate_file(request: Request) -> Response:
    """Translate a file of text or HTML; the answer says where its translation is."""
    service = service_of(request)
    async with request.form(max_files=1, max_fields=8) as sent:
        key, file = sent.get("api_key"), sent.get("file")
        service.admit(bearer(request) or (key if isinstance(key, str) else None))
        try:
            form = FileForm.model_validate({name: sent.get(name) for name in FileForm.model_fields})
        except ValidationError as error:
            raise validation_refusal(error.errors()) from None
        if not isinstance(file, UploadFile):
            raise bad_value("There is no file: send one, as multipart/form-data.", "file")
        name, text = file.filename or "", text_of(await file.read())
    do = FORMATS[kind_of(name)]
    check_texts([text], service.limits, "file")
    asked = Asked(texts=[text], source=form.source, target=form.target)

    def work(job: Job) -> str:
        (found,) = do(service.catalogue, job, asked)
        return found.result.text

    content = (await service.desk.do(request, work)).encode()
    kept = service.files.keep(renamed(name, form.target), content)
    return JSONResponse({"translatedFileUrl": str(request.url_for("download_file", number=kept.id))})


@router.get("/download_file/{number}", response_class=Response)
async def download_file(request: Request, number: str) -> Response:
    """A file that was translated, as long as it is kept. Its number is the key to it."""
    kept = service_of(request).files.get(number)
    kind = "text/plain" if kept.name.endswith(".txt") else "text/html"
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(kept.name)}"}
    return Response(kept.content, headers=headers, media_type=f"{kind}; charset=utf-8")
