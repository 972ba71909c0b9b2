"""Packages of files in a zip archive: Word documents and e-books."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping

from regard.documents.xml.tree import XmlFile
from regard.errors import CorpusError

MAX_BYTES = 1 << 30
"""Maximum size of all files of a package, unpacked; more is taken for an attack."""
MAX_FILES = 20_000
_SUPPORTED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Package:
    """The files of an archive, in their order."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            problem = f"is damaged or no zip archive: {error}"
            raise CorpusError(problem, code="damaged_file") from error
        self._files = self._archive.infolist()
        # An archive cannot give out more than it declares: reading stops there, and then a checksum fails.
        size = sum(each.file_size for each in self._files)
        if size > MAX_BYTES or len(self._files) > MAX_FILES:
            what = f"{len(self._files)} files, {size >> 20} MiB"
            limits = f"the limits are {MAX_FILES} files and {MAX_BYTES >> 20} MiB"
            raise CorpusError(f"has {what} when unpacked; {limits}", code="too_large")
        for each in self._files:
            if each.flag_bits & 1:
                raise CorpusError(f"{each.filename}: is encrypted", code="encrypted_file")
            if each.compress_type not in _SUPPORTED:
                problem = f"{each.filename}: its compression, {each.compress_type}, is not supported"
                raise CorpusError(problem, code="damaged_file")
        # Now, and not when all of it has been translated.
        for each in self._files:
            self.read(each.filename)

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        return [each.filename for each in self._files]

    def read(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            CorpusError: it is missing or damaged.
        """
        try:
            return self._archive.read(name)
        except KeyError:
            raise CorpusError(f"{name}: is missing from the package", code="damaged_file") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            raise CorpusError(f"{name}: is damaged: {error}", code="damaged_file") from error

    def xml(self, name: str) -> XmlFile:
        """A file of XML.

        Raises:
            CorpusError: it is missing or damaged.
        """
        content = self.read(name)
        try:
            return XmlFile(content)
        except CorpusError as error:
            raise CorpusError(f"{name}: {error}", code=error.code) from error

    def with_files(self, changed: Mapping[str, bytes], *, first: str = "") -> bytes:
        """The package with other contents of some files; order, dates and compression stay.

        Args:
            changed: contents by name.
            first: the file that has to be the first one, and uncompressed.
        """
        changed = {name: new for name, new in changed.items() if new != self.read(name)}
        if not changed:
            return self._content
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as archive:
            archive.comment = self._archive.comment
            for info in sorted(self._files, key=lambda info: info.filename != first):
                content = changed.get(info.filename)
                copy = _copied(info)
                copy.compress_type = zipfile.ZIP_STORED if info.filename == first else info.compress_type
                archive.writestr(copy, self.read(info.filename) if content is None else content)
        return written.getvalue()


def _copied(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """What is kept of a file beside its content; extra fields would name its old size."""
    copy = zipfile.ZipInfo(info.filename, info.date_time)
    copy.external_attr, copy.create_system, copy.comment = (
        info.external_attr,
        info.create_system,
        info.comment,
    )
    return copy
