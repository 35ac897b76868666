"""The server of the viewer, which imports little: pages load while a mechanism is still solved."""

from __future__ import annotations

import contextlib
import io
import socket
from typing import Any

from kic.errors import InputError
from kic.numerics.arguments import integer, text
from kic.numerics.optional import import_optional

PORT = 8080
VISER = "The viewer needs viser"


def serve(host: str = "127.0.0.1", port: int = PORT) -> Any:
    """Return a server at a port, or at the next free one."""
    viser = import_optional("viser", "view", VISER)
    host, port = text("host", host), integer("port", port, 1, 65535)
    try:
        socket.create_server(
            (host or "an empty text", 0)
        ).close()  # viser reports an error only in its thread
    except OSError as error:
        message = f"`host` must be an address of this computer, got {host!r}: {error}. Leave it out to serve "
        raise InputError(message + "the page to this computer only.", key="host", got=host) from None
    with contextlib.redirect_stdout(io.StringIO()):  # a banner
        server = viser.ViserServer(host=host, port=port, verbose=False)
    server.gui.configure_theme(show_share_button=False, show_logo=False)
    # without a graphics card, an environment map takes 12 s; shadows stripe thin plates
    server.scene.configure_environment_map(hdri=None)
    server.scene.configure_default_lights(enabled=False)
    server.scene.add_light_hemisphere("/sky", ground_color=(160, 160, 160), intensity=1.6)
    return server


def address(server: Any) -> str:
    """Return the address of the page."""
    return f"http://{server.get_host()}:{server.get_port()}"


def stop(server: Any) -> None:
    """Stop a server; open pages keep the last picture."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()
