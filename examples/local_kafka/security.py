"""Users, and certificates that are made for one run and known to nobody else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_JAAS = "org.apache.kafka.common.security"
_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True)
class Security:
    """What a cluster with listeners ``SASL_SSL`` and ``SSL`` checks its clients with.

    Attributes:
        folder: holds the PEM files: the authority that signed all certificates, and a client's certificate and key.
        users: passwords by name, for PLAIN and SCRAM alike.
        authorizes: users may do only what ACLs allow; who comes without a login may do everything.
    """

    folder: Path
    users: Mapping[str, str]
    authorizes: bool = False

    @property
    def authorizer(self) -> dict[str, str]:
        """What brokers and controllers are told of ACLs."""
        name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        return {"authorizer.class.name": name, "super.users": "User:ANONYMOUS"} if self.authorizes else {}

    @property
    def ca(self) -> Path:
        """The certificate of the authority."""
        return self.folder / "ca.pem"

    @property
    def client_certificate(self) -> Path:
        """What a client shows on the listener ``SSL``."""
        return self.folder / "client.pem"

    @property
    def client_key(self) -> Path:
        """The key of the client's certificate."""
        return self.folder / "client.key"

    def create(self) -> None:
        """Make the authority, and certificates of a broker and a client on this machine."""
        self.folder.mkdir(parents=True)
        key = self.folder / "ca.key"
        _openssl("req", "-x509", *_new_key(key), "-out", self.ca, "-days", 2, "-subj", "/CN=local Kafka authority")
        for name in ("broker", "client"):
            self._certificate(name, key)
        chain = (self.folder / "broker.key").read_text() + (self.folder / "broker.pem").read_text()
        (self.folder / "broker.keystore.pem").write_text(chain)

    def _certificate(self, name: str, authority: Path) -> None:
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.extensions"
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        _openssl("req", *_new_key(self.folder / f"{name}.key"), "-out", request, "-subj", f"/CN={name}")
        signed_by = ("-CA", self.ca, "-CAkey", authority, "-CAcreateserial", "-extfile", extensions)
        _openssl("x509", "-req", "-in", request, "-out", self.folder / f"{name}.pem", "-days", 2, *signed_by)

    def broker_settings(self) -> Iterator[tuple[str, str]]:
        """What a broker's ``server.properties`` says about it."""
        yield from self.authorizer.items()
        yield "ssl.keystore.type", "PEM"
        yield "ssl.keystore.location", str(self.folder / "broker.keystore.pem")
        yield "ssl.truststore.type", "PEM"
        yield "ssl.truststore.location", str(self.ca)
        yield "listener.name.ssl.ssl.client.auth", "required"
        yield "sasl.enabled.mechanisms", ",".join(("PLAIN", *_SCRAM))
        known = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
        yield "listener.name.sasl_ssl.plain.sasl.jaas.config", f"{_JAAS}.plain.PlainLoginModule required {known};"
        for mechanism in _SCRAM:
            name = f"listener.name.sasl_ssl.{mechanism.lower()}.sasl.jaas.config"
            yield name, f"{_JAAS}.scram.ScramLoginModule required;"

    def format_options(self) -> Iterator[str]:
        """What the controller's storage is formatted with, so that SCRAM knows the users."""
        for name, password in self.users.items():
            for mechanism in _SCRAM:
                yield "--add-scram"
                yield f"{mechanism}=[name={name},password={password}]"


def _new_key(path: Path) -> tuple[object, ...]:
    return ("-newkey", "rsa:2048", "-nodes", "-keyout", path)


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
