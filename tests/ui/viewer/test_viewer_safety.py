"""The viewer and others: requests without the token, foreign sites, names that are HTML, meshes elsewhere."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from html import unescape
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from raising import raises

import kic
from kic.io.robot import MESH_BYTES_MAX
from kic.ui.cli.main import main
from kic.ui.viewer import server
from kic.ui.viewer.visuals import Folders, visual_parts

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


def test_no_token_in_the_log_of_a_request_that_is_no_http(capfd: pytest.CaptureFixture) -> None:
    """On a new server, before viser's own filter of logs."""
    one = server.serve(port=8970)
    own = one.url.partition("?token=")[2]
    try:
        for line in (f"GET /{own}/ HTTP/1.0", f"POST /{own}/ HTTP/1.1", f"\x16{own}"):
            with socket.create_connection(("127.0.0.1", one.server.get_port()), timeout=30) as stream:
                stream.sendall(f"{line}\r\nHost: localhost\r\n\r\n".encode())
                while stream.recv(4096):
                    pass
        assert own not in repr(one)
    finally:
        server.stop(one.server)
    assert capfd.readouterr() == ("", "")


def test_responses_are_private(page: server.Page) -> None:
    for path in (f"/{token(page)}/", f"/?token={token(page)}", "/"):
        response, _ = asked(page, path, {})
        assert response.getheader("Referrer-Policy") == "no-referrer"
        assert response.getheader("Cache-Control") == "no-store"


def test_a_path_that_is_no_text(page: server.Page) -> None:
    with socket.create_connection(("127.0.0.1", page.server.get_port()), timeout=30) as stream:
        stream.sendall(b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 403 " in stream.recv(4096)


@pytest.mark.parametrize(
    ("proxy", "origin"),
    [
        ("https://hub.org:443/me", "https://hub.org"),
        ("http://hub.org:80", "http://hub.org"),
        ("https://hüb.org/{port}", "https://xn--hb-xka.org"),
        ("https://hub.org:8443", "https://hub.org:8443"),
    ],
)
def test_origins_of_proxies(proxy: str, origin: str) -> None:
    """Browsers leave the usual port out, and write names in ASCII."""
    one = server.serve(port=8970, proxy=proxy)
    try:
        assert asked(one, f"/{token(one)}/", {"Origin": origin})[0].status == 200
        assert asked(one, f"/{token(one)}/", {"Origin": "https://other.org"})[0].status == 403
    finally:
        server.stop(one.server)


def test_a_page_under_a_name_of_this_computer() -> None:
    one = server.serve("127.1", 8970)
    try:
        path = f"/{one.url.partition('?token=')[2]}/"
        assert asked(one, path, {"Host": f"127.1:{one.server.get_port()}"})[0].status == 200
    finally:
        server.stop(one.server)


def test_a_page_for_everyone_warns() -> None:
    with pytest.warns(UserWarning, match="everyone who has the token"):
        page = server.serve("0.0.0.0", 8970)
    try:
        assert asked(page, "/", {})[0].status == 403
    finally:
        server.stop(page.server)


def test_the_command_prints_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []

    def visit(viewer: kic.results.Viewer) -> None:
        page = server.Page(viewer.server, "", viewer.url)
        answers.append((page.url, asked(page, f"/{page.url.partition('?token=')[2]}/", {})[0].status))

    monkeypatch.setattr(kic.results.Viewer, "wait", visit)
    done = CliRunner().invoke(main, ["view", "four-bar", "--port", "8972"])
    ((url, status),) = answers
    assert done.stdout == f"The page is at {url}; end with Ctrl-C.\n"
    assert status == 200


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


def mesh_file(path: Path) -> Path:
    """Write the mesh of a tetrahedron."""
    path.parent.mkdir(parents=True, exist_ok=True)
    corners, faces = ("0 0 0", "1 0 0", "0 1 0", "0 0 1"), ("1 3 2", "1 2 4", "1 4 3", "2 3 4")
    path.write_text("\n".join([*(f"v {one}" for one in corners), *(f"f {one}" for one in faces), ""]))
    return path


def test_meshes_elsewhere_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "ws" / "robot" / "urdf"
    inside, package = (
        mesh_file(folder / "in.obj"),
        mesh_file(tmp_path / "ws" / "robot" / "meshes" / "arm.obj"),
    )
    outside = mesh_file(tmp_path / "ws" / "other" / "meshes" / "out.obj")
    (folder / "link.obj").symlink_to(outside)
    (folder / "linked").symlink_to(outside.parent)
    file = folder / "r.urdf"
    elsewhere = [
        "../../other/meshes/out.obj", str(outside), outside.as_uri(), "link.obj", "linked/out.obj",
        "package://other/meshes/out.obj", f"package:/{outside}", f"model://x{outside}",
        "linked/../../out.obj", "..%2F..%2Fother/meshes/out.obj", "file://localhost" + str(outside),
        "x" * 5000, "a\0b", "",
    ]  # fmt: skip
    alone = Folders(file)
    assert [name for name in elsewhere if alone.find(name)] == []
    assert alone.find("in.obj") == alone.find("package://robot/in.obj") == inside
    assert alone.find("../meshes/arm.obj") is alone.find("package://robot/meshes/arm.obj") is None
    # a package is the directory of its model
    (tmp_path / "ws" / "robot" / "package.xml").touch()
    packed = Folders(file)
    assert packed.find("../meshes/arm.obj") == packed.find("package://robot/meshes/arm.obj") == package
    assert [name for name in elsewhere if packed.find(name)] == []
    # names through links to the same directory
    (tmp_path / "link").symlink_to(tmp_path / "ws")
    there = tmp_path / "link" / "robot" / "urdf"
    for name in (str(there / "in.obj"), (there / "in.obj").as_uri(), "in.obj", str(inside)):
        assert Folders(there / "r.urdf").find(name) == inside
    assert Folders(there / "r.urdf").find(str(tmp_path / "link" / "other" / "meshes" / "out.obj")) is None
    assert alone.find("http://in.obj") is None
    # a user names others
    for further in (tmp_path / "ws", outside.parents[1]):
        named = Folders(file, [str(further)])
        assert {named.find(name) for name in elsewhere[:6]} == {outside}


MJCF = """<mujoco><asset><mesh name="arm" file="../other/arm.obj"/></asset><worldbody><body name="b">
<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/><joint name="j"/><geom type="mesh" mesh="arm"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("size", [None, MESH_BYTES_MAX + 1])
@pytest.mark.parametrize("text", [robot("b", "package://other/arm.obj"), MJCF], ids=["urdf", "mjcf"])
def test_named_directories_and_sizes_of_meshes(tmp_path: Path, text: str, size: int | None) -> None:
    pytest.importorskip("trimesh", reason="meshes need trimesh")
    if text == MJCF:
        pytest.importorskip("mujoco", reason="MJCF needs mujoco")
    mesh = mesh_file(tmp_path / "other" / "arm.obj")
    if size:
        with mesh.open("r+b") as stream:
            stream.truncate(size)  # without blocks on the disk
    file = tmp_path / "robot" / "r.xml"
    file.parent.mkdir()
    file.write_text(text)
    m = kic.load(file)
    (reason,) = visual_parts(m, file)[1]
    assert "`meshes`" in reason
    parts, missing = visual_parts(m, file, [str(mesh.parent)])
    assert len(parts) == (size is None)
    assert [one.partition(" (")[2] for one in missing] == (["more than 100 MB)"] if size else [])


@pytest.mark.parametrize("kind", ["obj.bz2", "bz2", "zip", "tar.gz", "3mf", "xyz", ""])
def test_compressed_meshes_are_not_read(tmp_path: Path, kind: str) -> None:
    """They may hold more than their size."""
    mesh_file(tmp_path / "arm.obj").rename(tmp_path / f"arm.{kind}")
    file = tmp_path / "r.urdf"
    file.write_text(robot("b", f"arm.{kind}"))
    parts, missing = visual_parts(kic.from_urdf(file), file)
    assert not parts
    assert missing == [f"arm.{kind} (not one of stl, obj, ply, off, dae, glb, gltf)"]


def test_a_drag_moves_the_part_that_was_chosen() -> None:
    """Its last pose is handled after another part is chosen, and both handles count."""
    viewer = kic.load("four-bar").view(port=8979)
    panels = viewer._panels
    assert panels is not None

    def drag(handle: Any, phase: str) -> None:
        first, _ = handle._impl_aux.update_cb
        asyncio.run(first(SimpleNamespace(phase=phase)))

    try:
        done: list[tuple[Any, ...]] = []
        viewer._session.drag = lambda part, T, turn: done.append((part, T[0, 3], turn))  # type: ignore[method-assign]
        viewer._session.change = lambda pivot, at: done.append((pivot, *at))  # type: ignore[method-assign]
        panels.part.value, panels.pivot.value = "tip", "B"
        panels.gizmo.position = panels.handle.position = (7.0, 0.0, 0.0)
        drag(panels.gizmo, "end")
        drag(panels.handle, "update")
        panels.part.value, panels.pivot.value = "crank", "A"
        panels._follow()
        assert [one[0] for one in done] == ["tip", "B"]
        assert done[0] == ("tip", 7.0, False)
        # the page was closed while it dragged
        panels._release()
        viewer._update()
        assert np.allclose(panels.place.value, viewer._session.mechanism["A"].at)
    finally:
        viewer.stop()
