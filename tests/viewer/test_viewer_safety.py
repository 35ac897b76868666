"""The viewer and others: requests without the token, foreign sites, names that are HTML."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from html import unescape
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from raising import raises

import kic
from kic.cli.main import main
from kic.viewer import server

viser = pytest.importorskip("viser", reason="the viewer needs viser")
WEBSOCKET = server._PROBES[1] | {"Sec-WebSocket-Protocol": f"viser-v{viser.__version__}"}
HTML = "<iframe srcdoc=\"<script>parent.document.title='run'</script>\"></iframe>"
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


@pytest.fixture(scope="module")
def page() -> Iterator[server.Page]:
    """Return a page at a server without a mechanism."""
    one = server.serve(port=8970, proxy="https://{port}.hub.org/me/proxy/{port}/")
    yield one
    server.stop(one.server)


def token(page: server.Page) -> str:
    """Return the token of a page at a proxy."""
    return page.url.rstrip("/").rpartition("/")[2]


def asked(page: server.Page, path: str, headers: dict[str, str]) -> tuple[HTTPResponse, str]:
    """Return the response to a request, and its text unless it is a WebSocket."""
    connection = HTTPConnection("127.0.0.1", page.server.get_port())
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response, "" if response.status == 101 else response.read().decode()
    finally:
        connection.close()


OWN, FORWARDED = "http://127.0.0.1:{port}", {"Host": "localhost:9000", "Origin": "http://localhost:9000"}


@pytest.mark.parametrize(
    ("path", "headers", "is_open"),
    [
        ("/{token}/", {}, True),
        ("/{token}", {"Origin": OWN}, True),
        ("/{token}/?websocket=ws://127.0.0.1", {"Host": "192.168.0.7:80"}, True),
        # ports that are forwarded by ssh -L, and a proxy that passes its own name on or not
        ("/{token}/", FORWARDED, True),
        ("/{token}/", {"Host": "{port}.Hub.org", "Origin": "https://{port}.hub.org"}, True),
        ("/me/proxy/8970/{token}/", {"Origin": "https://{port}.hub.org"}, True),
        # the token
        ("/", {}, False),
        ("/?token=", {}, False),
        ("/?token=wrong&token={token}", {}, False),
        ("/{token}x/", {}, False),
        ("/x{token}/", {}, False),
        ("/%C3%A9/", {}, False),
        ("/", {"Cookie": "token={token}", "Referer": OWN + "/{token}/"}, False),
        ("/me/proxy/8970/", {"Host": "{port}.hub.org", "Origin": "https://{port}.hub.org"}, False),
        # other sites
        ("/{token}/", {"Origin": "http://evil.example"}, False),
        ("/{token}/", {"Origin": "http://127.0.0.1:1"}, False),
        ("/{token}/", {"Origin": "null"}, False),
        ("/{token}/", {"Origin": "http://["}, False),
        ("/{token}/", FORWARDED | {"Origin": OWN}, False),
        # names that others may give to this computer
        ("/{token}/", {"Host": "evil.example:{port}", "Origin": "http://evil.example:{port}"}, False),
        ("/{token}/", {"Host": "evil.example"}, False),
        ("/{token}/", {"Host": "127.0.0.1.evil.example"}, False),
        ("/{token}/", {"Host": ""}, False),
        ("/{token}/", {"Host": "[", "Origin": "null"}, False),
    ],
)
@pytest.mark.parametrize("kind", [{}, WEBSOCKET], ids=["page", "websocket"])
def test_requests(
    page: server.Page, path: str, headers: dict[str, str], is_open: bool, kind: dict[str, str]
) -> None:
    """Pages and WebSockets need the token, a name of this computer, and no other site."""
    values = {"token": token(page), "port": page.server.get_port()}
    sent = {name: text.format(**values) for name, text in headers.items()}
    response, answer = asked(page, path.format(**values), kind | sent)
    assert response.status == ((101 if kind else 200) if is_open else 403)
    if not is_open:
        assert response.getheader("Content-Type", "").startswith("text/plain")
        assert values["token"] not in answer
        assert "proxy" in answer or "?token=" in answer


def test_printed_addresses(page: server.Page) -> None:
    """The token of the printed address moves into the path; each viewer has another."""
    port = page.server.get_port()
    assert page.address == f"https://{port}.hub.org/me/proxy/{port}/"
    other = server.serve(port=8970)
    try:
        address, _, own = other.url.partition("?token=")
        assert address == other.address == f"http://127.0.0.1:{other.server.get_port()}/"
        assert len(own) >= 32
        response, _ = asked(other, f"/?token={own}", {})
        assert (response.status, response.getheader("Location")) == (302, f"./{own}/")
        assert asked(other, f"/{token(page)}/", {})[0].status == 403
    finally:
        server.stop(other.server)


def test_no_token_in_logs(page: server.Page, caplog: pytest.LogCaptureFixture) -> None:
    own = token(page)
    with caplog.at_level(logging.DEBUG):
        for path in (f"/{own}/", f"/?token={own}", f"/{own}x"):
            asked(page, path, WEBSOCKET)
            asked(page, path, {})
    assert own not in caplog.text


def test_a_page_for_everyone_warns() -> None:
    with pytest.warns(UserWarning, match="everyone who has the token"):
        page = server.serve("0.0.0.0", 8970)
    try:
        assert asked(page, "/", {})[0].status == 403
    finally:
        server.stop(page.server)


def test_the_command_prints_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []

    def visit(viewer: kic.Viewer) -> None:
        page = server.Page(viewer.server, "", viewer.url)
        answers.append((page.url, asked(page, f"/{page.url.partition('?token=')[2]}/", {})[0].status))

    monkeypatch.setattr(kic.Viewer, "wait", visit)
    done = CliRunner().invoke(main, ["view", "four-bar", "--port", "8972"])
    ((url, status),) = answers
    assert done.stdout == f"The page is at {url}; end with Ctrl-C.\n"
    assert status == 200


@pytest.mark.parametrize(
    "proxy", ["hub.org", "ftp://hub.org", "https://", "https://hub.org/?a=b", "https://me@hub.org", "", 3]
)
def test_wrong_proxies(proxy: object) -> None:
    with raises(kic.InputError, key="proxy"):
        kic.load("four-bar").view(proxy=proxy)  # type: ignore[arg-type]


def test_a_version_of_viser_without_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """No page is served without the checks of requests."""
    with monkeypatch.context() as patch:
        patch.setattr("viser.infra._infra.websockets", SimpleNamespace())
        with raises(kic.MissingExtraError, extra="view"):
            server.serve(port=8975)
    started = []

    def start(**options: object) -> object:
        # a server that replaces the hook afterwards
        started.append(original(**options))
        return started[0]

    original = viser.ViserServer
    monkeypatch.setattr(viser, "ViserServer", start)
    monkeypatch.setattr(server.Guard, "refused", lambda *_: None)
    with raises(kic.MissingExtraError, extra="view"):
        server.serve(port=8975)
    with pytest.raises(ConnectionError):
        asked(server.Page(started[0], "", ""), "/", {})


def robot(link: str, mesh: str) -> str:
    """Return a URDF of one joint, whose moving link has a mesh."""
    return (
        f'<robot name="r"><link name="a"/><link name="{link}">{INERTIAL}<visual><geometry>'
        f'<mesh filename="{mesh}"/></geometry></visual></link><joint name="j {link}" type="continuous">'
        f'<parent link="a"/><child link="{link}"/><axis xyz="0 0 1"/></joint></robot>'
    )


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    """Files, names, errors and what was typed are text."""
    file = tmp_path / "evil.urdf"
    coded = HTML.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    file.write_text(robot(coded, coded))
    viewer = kic.from_urdf(file).view(visuals=file, port=8976)
    panels = viewer._panels
    assert panels is not None
    try:
        seen = [panels.message.content]
        viewer._session.drive(HTML)
        panels.tables.value = True
        viewer._update()
        seen += [panels.message.content, panels.text.content]
    finally:
        viewer.stop()
    for text in seen:
        assert "<iframe" not in text
        assert "<script" not in text
        assert "iframe" in unescape(text)
