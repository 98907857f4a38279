"""The scheduler's address, and how safely it may be spoken to: a Dask scheduler runs code for whoever reaches it."""

import ipaddress
import re
import socket
from pathlib import Path

from distributed.security import Security

from ..client.marker import MarkerRefused

_ADDRESS = re.compile(r"(?:(?P<protocol>[a-z]+)://)?(?P<host>[\w.%-]+|\[[\w:.%]+\]):(?P<port>\d{1,5})")
_FILES = {
    "tls_ca_file": "DASK_DISTRIBUTED__COMM__TLS__CA_FILE",
    "tls_client_cert": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT",
    "tls_client_key": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY",
}
"""What Dask is told of the files by: the same in its configuration, `distributed.comm.tls`."""


class Address:
    """Where the scheduler listens."""

    def __init__(self, text: str, *, plain_tcp: bool = False) -> None:
        """text: tls://HOST:PORT, also without tls://. plain_tcp: whether tcp:// may leave this machine.

        Raises MarkerRefused.
        """
        found = _ADDRESS.fullmatch(text)
        protocol = (found["protocol"] or "tls") if found else ""
        if found is None or protocol not in ("tls", "tcp"):
            raise MarkerRefused(f"{text} is no scheduler's address: it is tls://HOST:PORT.")
        self.text = f"{protocol}://{found['host']}:{found['port']}"
        self._plain_tcp = plain_tcp
        if not self.is_safe(self.text):
            raise MarkerRefused(
                f"{text} is no address of this machine, and over plain tcp anyone on the way could read submissions, "
                "change marks and run code here and there. Take tls:// (docs/cluster.md says how), or an SSH tunnel; "
                "--plain-tcp where the network is yours alone."
            )
        self.security = _security() if protocol == "tls" else Security(require_encryption=False)

    def is_safe(self, address: str) -> bool:
        """Whether Dask's address of a worker, or of the scheduler, may be spoken to."""
        found = _ADDRESS.fullmatch(address)
        if found is None:
            return False
        return found["protocol"] == "tls" or self._plain_tcp or _is_here(found["host"].strip("[]"))


def _is_here(host: str) -> bool:
    """Whether a name or a number stands for this machine alone."""
    try:
        found = {str(place[4][0]) for place in socket.getaddrinfo(host, None)}
        return bool(found) and all(ipaddress.ip_address(number.partition("%")[0]).is_loopback for number in found)
    except (OSError, ValueError):
        return False


def _security() -> Security:
    """What Dask's own configuration says of TLS for a client, tried; raises MarkerRefused."""
    security = Security(require_encryption=True)
    for name, variable in _FILES.items():
        file = getattr(security, name)
        if not file and name == "tls_client_key":  # it may be in the certificate's file
            continue
        if not file:
            raise MarkerRefused(
                f"TLS needs three files, and {variable} names none. docs/cluster.md says how they are made."
            )
        if "\n" not in file and not Path(file).is_file():
            raise MarkerRefused(f"{variable} names {file}, which is not there.")
    try:
        security.get_connection_args("client")
    except (OSError, ValueError) as error:  # of ssl's too
        raise MarkerRefused(f"The files for TLS cannot be used ({error}): see {', '.join(_FILES.values())}.") from None
    return security
