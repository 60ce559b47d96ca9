"""The certificates of ``SSL_CERT_FILE`` as a Java trust store.

Behind a proxy that inspects TLS, people point ``SSL_CERT_FILE`` to its certificate, and every tool follows it but
Java, which reads keystores only. The JKS format is simple enough to be written here without a keystore tool.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import struct
from collections.abc import Sequence
from pathlib import Path

VARIABLE = "SSL_CERT_FILE"
PASSWORD = "trusted"  # of public certificates: the format wants one for its checksum
MAGIC, VERSION, TRUSTED_CERTIFICATE = 0xFEEDFEED, 2, 2


def trust_options(work: Path) -> list[str]:
    """Return the Java options that make Java trust what ``SSL_CERT_FILE`` lists; none where it is not set.

    The trust store is written into ``work``. A trust store that the user gave Java (``JAVA_TOOL_OPTIONS``) stays.
    """
    bundle = os.environ.get(VARIABLE)
    if not bundle or "javax.net.ssl.trustStore" in os.environ.get("JAVA_TOOL_OPTIONS", ""):
        return []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=bundle)
    except OSError:  # unreadable, or no certificates: Java's own are left to it
        return []
    store = work / "trusted.jks"
    store.write_bytes(_jks(context.get_ca_certs(binary_form=True)))
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    ]


def _jks(certificates: Sequence[bytes]) -> bytes:
    """Return a keystore of these DER certificates, as ``sun.security.provider.JavaKeyStore`` reads it."""
    entries = b"".join(
        struct.pack(">I", TRUSTED_CERTIFICATE)
        + _text(str(number))
        + struct.pack(">Q", 0)
        + _text("X.509")
        + struct.pack(">I", len(certificate))
        + certificate
        for number, certificate in enumerate(certificates)
    )
    content = struct.pack(">III", MAGIC, VERSION, len(certificates)) + entries
    checksum = hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content, usedforsecurity=False)
    return content + checksum.digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")
