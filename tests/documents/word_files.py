"""Makes Word documents for tests: a package with parts as Word writes them."""

import io
import zipfile

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_NAMESPACES = (
    f'xmlns:w="{W}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
)
_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"


def part(root: str, content: str) -> str:
    """The XML of a part."""
    return f"{_DECLARATION}<w:{root} {_NAMESPACES}>{content}</w:{root}>"


def run(text: str, properties: str = "") -> str:
    """A run of text, with the content of its properties."""
    formatting = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r w:rsidR="00AA">{formatting}<w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*runs: str, properties: str = "") -> str:
    """A paragraph."""
    return f"<w:p>{f'<w:pPr>{properties}</w:pPr>' if properties else ''}{''.join(runs)}</w:p>"


def word_file(
    body: str, parts: dict[str, str] | None = None, others: dict[str, bytes] | None = None
) -> bytes:
    """A document; `parts` are headers, footers and notes by their name without suffix."""
    parts = parts or {}
    types = [("document", "document.main"), ("styles", "styles")]
    types += [(name, name.rstrip("0123456789")) for name in parts]
    overrides = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{_WORD}.{kind}+xml"/>' for name, kind in types
    )
    relations = "".join(
        f'<Relationship Id="rId{i}" Type="{_OFFICE}/{name.rstrip("0123456789")}" Target="{name}.xml"/>'
        for i, name in enumerate(["styles", *parts], 1)
    )
    lang = '<w:rPr><w:lang w:val="en-US" w:eastAsia="zh-CN"/></w:rPr>'
    styles = f"<w:docDefaults><w:rPrDefault>{lang}</w:rPrDefault></w:docDefaults>"
    package_relation = f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="word/document.xml"/>'
    files = {
        "[Content_Types].xml": f'{_DECLARATION}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>',
        "_rels/.rels": f'{_DECLARATION}<Relationships xmlns="{_PACKAGE}/relationships">'
        f"{package_relation}</Relationships>",
        "word/_rels/document.xml.rels": f'{_DECLARATION}<Relationships xmlns="{_PACKAGE}/relationships">'
        f"{relations}</Relationships>",
        "word/document.xml": part("document", f"<w:body>{body}<w:sectPr/></w:body>"),
        "word/styles.xml": part("styles", styles),
        **{f"word/{name}.xml": content for name, content in parts.items()},
    }
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (files | (others or {})).items():
            info = zipfile.ZipInfo(name, (2021, 2, 3, 4, 6, 8))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return written.getvalue()


def file_of(content: bytes, name: str = "word/document.xml") -> str:
    """A file of a package."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(name).decode()
