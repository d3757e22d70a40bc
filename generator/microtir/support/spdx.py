"""Writes software bills of materials in SPDX 2.3, as JSON.

Equal contents give equal bytes: the date is a constant, and the identifier of a document is a
digest of what it says.  Source: the specification of SPDX 2.3.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence

from microtir.version import __version__

DOCUMENT = "SPDXRef-DOCUMENT"
UNSTATED = "NOASSERTION"

Element = dict[str, object]

_DATE = "1980-01-01T00:00:00Z"  # that of the files in archives


def document(
    name: str,
    packages: Sequence[Element],
    relations: Iterable[Element],
    files: Sequence[Element] = (),
    licences: Mapping[str, str] | None = None,
) -> str:
    """Return a document whose subject is the first package; `licences` has texts by identifier."""
    subject = str(packages[0]["SPDXID"])
    texts = [
        {"licenseId": identifier, "name": identifier, "extractedText": text}
        for identifier, text in (licences or {}).items()
    ]
    content: Element = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": DOCUMENT,
        "name": name,
        "creationInfo": {"created": _DATE, "creators": [f"Tool: microtir-{__version__}"]},
        **({"hasExtractedLicensingInfos": texts} if texts else {}),
        "packages": packages,
        **({"files": files} if files else {}),
        "relationships": [relation(DOCUMENT, "DESCRIBES", subject), *relations],
    }
    identity = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content))
    return json.dumps(content | {"documentNamespace": f"urn:uuid:{identity}"}, indent=1) + "\n"


def package(
    identifier: str, name: str, version: str, purpose: str, licence: str | None = None
) -> Element:
    """Return a package; an empty version and a licence of None state nothing."""
    return {
        "SPDXID": identifier,
        "name": name,
        **({"versionInfo": version} if version else {}),
        "primaryPackagePurpose": purpose,
        "downloadLocation": UNSTATED,
        "filesAnalyzed": False,
        "licenseConcluded": UNSTATED,
        "licenseDeclared": licence or UNSTATED,
        "copyrightText": UNSTATED,
    }


def file(number: int, path: str, data: bytes, kind: str, licence: str) -> Element:
    """Return a file of a package, with the digests that SPDX asks for."""
    sha1 = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    return {
        "SPDXID": f"SPDXRef-File-{number}",
        "fileName": f"./{path}",
        "fileTypes": [kind],
        "checksums": [checksum("SHA1", sha1), checksum("SHA256", hashlib.sha256(data).hexdigest())],
        "licenseConcluded": UNSTATED,
        "licenseInfoInFiles": [licence],
        "copyrightText": UNSTATED,
    }


def with_files(whole: Element, files: Mapping[str, bytes], listed: Sequence[Element]) -> Element:
    """Return a package with its files, and the code that shows whether one is missing."""
    sums = sorted(hashlib.sha1(data, usedforsecurity=False).hexdigest() for data in files.values())
    code = hashlib.sha1("".join(sums).encode(), usedforsecurity=False).hexdigest()
    return whole | {
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": code},
        "hasFiles": [element["SPDXID"] for element in listed],
    }


def relation(element: str, kind: str, related: str) -> Element:
    """Return a relationship of two elements, by their identifiers."""
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": related}


def checksum(algorithm: str, value: str) -> dict[str, str]:
    """Return a checksum: the name of the algorithm, and digits in hex."""
    return {"algorithm": algorithm, "checksumValue": value}
