"""Server of the viewer, with few imports, so that pages load while a mechanism is being solved.

A request needs the token of the printed address. The token becomes a part of the path, from which the page
derives the address of its WebSocket. A cookie would be sent to all ports of a host, and would be missing in a
page that a notebook shows inline.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import ipaddress
import logging
import re
import secrets
import socket
import threading
import warnings
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from kic.errors import InputError, MissingExtraError
from kic.numerics.arguments import integer, text
from kic.numerics.optional import import_optional

PORT = 8080
VISER = "The viewer needs viser"
_FOREIGN_HOST = (
    "The viewer is not served under this name. Open the printed address, or use the IP address of the "
    "computer. If a proxy serves the page, give its address to the viewer: `proxy` or --proxy.\n"
)
_FOREIGN_ORIGIN = (
    "Pages of other sites cannot use the viewer. "
    "If a proxy serves the page, give its address to the viewer: `proxy` or --proxy.\n"
)
_NO_TOKEN = (
    "The address must have the token of the viewer. Open the address that `kic view` printed, which ends "
    "with ?token=...; in Python it is the attribute `url` of the viewer.\n"
)
_OPEN = (
    "The page of the viewer is open to everyone who has the token of its address, and the connection is not "
    "encrypted. Leave `host` out to serve the page to this computer only."
)
# headers of a page, and of a WebSocket
_PROBES: tuple[dict[str, str], ...] = (
    {},
    {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    },
)  # fmt: skip
# an address whose first group is the host
_PROXY = re.compile(r"https?://([^/?#@\s]+)(?:/[^?#\s]*)?")
_PROBE_S = 30.0  # a server that has not answered by then is stopped
_STARTING = threading.Lock()
# debug records, and those of requests that are not HTTP, contain addresses with the token
_LOG = logging.getLogger(__name__)
_LOG.setLevel(logging.INFO)
_LOG.addFilter(lambda record: record.msg != "opening handshake failed")
# linked pages receive no token, and caches store no page
_PRIVATE = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
# ports that browsers omit
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class Page(NamedTuple):
    """A viser server, and the address of its page without the token and with it."""

    server: Any
    address: str
    url: str

    def __repr__(self) -> str:
        return f"<page at {self.address}>"  # without the token


@dataclass(repr=False)
class Guard:
    """Checks of all requests: the name of the server (Host), the site of the page (Origin) and the token."""

    token: str
    host: str
    """Name that the user gave to this computer."""
    proxies: tuple[str, ...] = ()
    """Names, perhaps with a port, under which proxies serve the page."""

    def refused(self, connection: Any, request: Any) -> Any:
        """Return the response to a rejected request, or None for an accepted request."""
        hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return connection.respond(HTTPStatus.FORBIDDEN, _FOREIGN_HOST)
        if any(one.lower().partition("://")[2] not in (hosts[0].lower(), *self.proxies) for one in origins):
            return connection.respond(HTTPStatus.FORBIDDEN, _FOREIGN_ORIGIN)
        path, _, query = request.path.partition("?")
        if self._is_token(path.rstrip("/").rpartition("/")[2]):
            return None
        if not self._is_token(*parse_qs(query).get("token", [])):
            return connection.respond(HTTPStatus.FORBIDDEN, _NO_TOKEN)
        response = connection.respond(HTTPStatus.FOUND, "")
        response.headers["Location"] = f"./{self.token}/"  # relative, because proxies serve it in a folder
        return response

    def _is_own(self, host: str) -> bool:
        """Return True for names that no other site can give to this computer by DNS."""
        if host.lower() in self.proxies:
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
            own = "localhost", socket.gethostname().lower(), self.host.lower()
            return name in own or bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    def _is_token(self, *words: str) -> bool:
        own = self.token.encode()
        return len(words) == 1 and secrets.compare_digest(words[0].encode(errors="surrogateescape"), own)


def serve(host: str = "127.0.0.1", port: int = PORT, proxy: str | None = None) -> Page:
    """Start a server at a port, or at the next free port, and return its page."""
    viser = import_optional("viser", "view", VISER)
    host, port = text("host", host), integer("port", port, 1, 65535)
    proxied = None if proxy is None else _PROXY.fullmatch(text("proxy", proxy))
    if proxy is not None and proxied is None:
        message = f"`proxy` must be the address of the page at a proxy, got {proxy!r}. Give one such as "
        raise InputError(message + "'https://hub.org/user/me/proxy/{port}'.", key="proxy", got=proxy)
    try:
        # viser reports an error only in its thread
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host or "an empty text", 0), family=family) as probe:
            place = ipaddress.ip_address(probe.getsockname()[0])
    except OSError as error:
        message = f"`host` must be an address of this computer, got {host!r}: {error}. Leave it out to serve "
        raise InputError(message + "the page to this computer only.", key="host", got=host) from None
    guard = Guard(secrets.token_urlsafe(), host)
    loopback = "127.0.0.1" if place.version == 4 else "::1"
    server = _start(viser, guard, host, port, loopback if place.is_unspecified else host)
    if not place.is_loopback:
        warnings.warn_explicit(_OPEN, UserWarning, "kic", 0, "kic.ui.viewer")
    server.gui.configure_theme(show_share_button=False, show_logo=False)
    # without a graphics card, an environment map takes 12 s; shadows stripe thin plates
    server.scene.configure_environment_map(hdri=None)
    server.scene.configure_default_lights(enabled=False)
    server.scene.add_light_hemisphere("/sky", ground_color=(160, 160, 160), intensity=1.6)
    own = str(server.get_port())
    if proxied:
        address = proxied[0].replace("{port}", own).rstrip("/") + "/"
        name = proxied[1].replace("{port}", own).lower()
        # as browsers write it
        plain = name.removesuffix(_DEFAULT_PORTS[address.partition(":")[0].lower()])
        with contextlib.suppress(UnicodeError):
            plain = plain.encode("idna").decode()
        guard.proxies = name, plain
        # JupyterHub takes `token` in a query for its own
        return Page(server, address, f"{address}{guard.token}/")
    name = f"[{host}]" if ":" in host else host
    if place.is_unspecified:
        name = socket.gethostname()
        if place.version == 6 and not _has_ipv6(name):
            name = "[::1]"
    address = f"http://{name}:{own}/"
    return Page(server, address, f"{address}?token={guard.token}")


def _has_ipv6(name: str) -> bool:
    """Return True if a host name has an IPv6 address."""
    try:
        return bool(socket.getaddrinfo(name, None, socket.AF_INET6))
    except OSError:
        return False


def _start(viser: Any, guard: Guard, host: str, port: int, own: str) -> Any:
    """Return a server of viser whose requests pass a guard; `own` is its address for this computer.

    viser has no hook for requests. Therefore its library for WebSockets is replaced while the server starts.
    """

    def guarded(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
        def process(connection: Any, request: Any) -> Any:
            response = guard.refused(connection, request)
            if response is None:  # the client of viser is a single file
                response = process_request(connection, replace(request, path="/"))
            if response is not None:
                response.headers.update(_PRIVATE)
            return response

        return serve(*arguments, **options | {"process_request": process, "logger": _LOG})

    with _STARTING, contextlib.redirect_stdout(io.StringIO()):  # a banner
        try:
            infra: Any = importlib.import_module("viser.infra._infra")
            library, serve = infra.websockets, infra.websockets.asyncio.server.serve
        except (ImportError, AttributeError):
            raise _unguarded(viser) from None
        module = SimpleNamespace(**{**vars(library.asyncio.server), "serve": guarded})
        asyncio = SimpleNamespace(**{**vars(library.asyncio), "server": module})
        infra.websockets = SimpleNamespace(**{**vars(library), "asyncio": asyncio})
        try:
            server = viser.ViserServer(host=host, port=port, verbose=False)
        finally:
            infra.websockets = library
    if not all(_is_refused(own, server.get_port(), headers) for headers in _PROBES):
        stop(server)
        raise _unguarded(viser)
    return server


def _is_refused(host: str, port: int, headers: dict[str, str]) -> bool:
    """Return True if a request without a token is forbidden."""
    connection = HTTPConnection(host, port, timeout=_PROBE_S)
    try:
        connection.request("GET", "/", headers=headers)
        return connection.getresponse().status == HTTPStatus.FORBIDDEN
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _unguarded(viser: Any) -> MissingExtraError:
    message = (
        f"viser must be a version whose requests kic can check, got {viser.__version__}. Install another "
    )
    return MissingExtraError(message + "version: pip install viser==1.1.1.", extra="view")


def stop(server: Any) -> None:
    """Stop a server; open pages keep the last picture."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()
