"""The viewer in a real browser: sliders, dragging, changes, motions and a replay without a server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import NAMES, Tab, browser, found
from commands import HANGS_S

import kic

viser = pytest.importorskip("viser", reason="the viewer needs viser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not found(), reason=f"no browser: none of {', '.join(NAMES)} is installed"),
]
WAIT_S = HANGS_S / 5  # a page that has not changed by then does not change
INPUT = "input:not([type=hidden])"
# press the k-th element of a kind beside a label, or the button, the heading or the option with a text
PRESS = """
(() => {
  const [label, kind, k] = %s;
  const named = [...document.querySelectorAll("label, div, button, p, span")]
    .filter(e => e.textContent.trim() === label && e.getBoundingClientRect().width > 0);
  let e = named[named.length - 1];
  while (e && kind && e.querySelectorAll(kind).length <= k) e = e.parentElement;
  if (!e) return false;
  if (kind) e = e.querySelectorAll(kind)[k];
  e.focus();
  e.click();
  return true;
})()
"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Return a page of a new browser with WebGL."""
    with browser(tmp_path_factory.mktemp("profile"), webgl=True) as one:
        yield one


def until(tab: Tab, reached: Callable[[], Any], doing: Callable[[], Any] = lambda: None) -> None:
    """Repeat an action until a condition holds."""
    end = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < end, tab.errors()
        doing()
        tab.run("new Promise(done => setTimeout(done, 50))")


def press(tab: Tab, label: str, kind: str = "", k: int = 0) -> None:
    """Press an element when it is there."""
    until(tab, lambda: tab.run(PRESS % f"[{label!r}, {kind!r}, {k}]"))


def enter(tab: Tab, label: str, text: str) -> None:
    """Type into the first input beside a label."""
    press(tab, label, INPUT)
    tab.write(text)


def choose(tab: Tab, label: str, option: str) -> None:
    """Choose an option of a list."""
    press(tab, label, INPUT)
    press(tab, option)


def pixel(viewer: kic.results.Viewer, at: np.ndarray) -> np.ndarray:
    """Return the place in the window of a point in space."""
    (client,) = viewer.server.get_clients().values()
    camera = client.camera
    toward = camera.look_at - camera.position
    toward /= np.linalg.norm(toward)
    right = np.cross(toward, camera.up_direction)
    right /= np.linalg.norm(right)
    ray = at - camera.position
    scale = camera.image_height / 2 / np.tan(camera.fov / 2) / (ray @ toward)
    x, y = scale * (ray @ right), -scale * (ray @ np.cross(right, toward))
    return np.array([camera.image_width / 2 + x, camera.image_height / 2 + y])


def closure(viewer: kic.results.Viewer) -> float:
    """Return the distance of both sides of the joint that closes the four-bar, as a share of its size."""
    with viewer._lock:  # not during a change
        at = np.array([*viewer._session.mechanism["C"].at, 1.0])
        one, other = (viewer._session.frame(body) @ at for body in ("coupler", "rocker"))
    return float(np.linalg.norm(one - other)) / 0.48


def test_everything_by_hand(tab: Tab, tmp_path: Path) -> None:
    m = kic.load("four-bar")
    viewer = m.path({"A": np.linspace(0.5, 0.5 + 2 * np.pi, 50)}).view(trace="tip")
    session, panels = viewer._session, viewer._panels
    try:
        tab.open(viewer.url)
        until(tab, viewer.server.get_clients)
        # a slider
        enter(tab, "A (deg)", "100")
        until(tab, lambda: abs(session.values()[0] - np.radians(100)) < 1e-9)
        assert closure(viewer) < 1e-12
        # the motion
        press(tab, "Play / pause")
        until(tab, lambda: panels.frame.value > 5)
        press(tab, "Play / pause")
        until(tab, lambda: not panels._playing.is_set())
        assert closure(viewer) < 1e-12
        # other coordinates
        enter(tab, "Names", "nothing")
        until(tab, lambda: panels.names.value == "nothing")
        press(tab, "Use these coordinates")
        until(tab, lambda: "nothing" in session.message)
        assert session.drivers == ("A",)
        enter(tab, "Names", "D")
        until(tab, lambda: panels.names.value == "D")
        press(tab, "Use these coordinates")
        until(tab, lambda: session.drivers == ("D",))
        enter(tab, "D (deg)", "130")
        until(tab, lambda: abs(session.values()[0] - np.radians(130)) < 1e-9)
        # a point is dragged past a dead centre
        choose(tab, "Part", "tip")
        until(tab, lambda: panels.gizmo.visible)

        def drag_on() -> None:
            drag_tip(tab, viewer)
            assert closure(viewer) < 1e-12

        until(tab, lambda: session.blocked, drag_on)
        assert "dead centre" in session.message
        until(tab, lambda: "dead centre" in tab.run("document.body.innerText"))
        # singular configurations: dead centres of the rocker
        press(tab, "Other configurations")
        press(tab, "Singular nearby")
        until(tab, lambda: len(panels.mode.options) > 1)
        until(tab, lambda: "D can be at rest" in tab.run("document.body.innerText"))
        # a load counts in the static effort
        press(tab, "Load")
        choose(tab, "On", "tip")
        enter(tab, "Force", "7")
        until(tab, lambda: session.load[1][0] == 7)
        assert session.load[0] == "tip"
        # a second page shows the same and leaves no trace
        target = tab.ask("Target.createTarget", url=viewer.url)["targetId"]
        until(tab, lambda: len(viewer.server.get_clients()) == 2)
        tab.ask("Target.closeTarget", targetId=target)
        until(tab, lambda: len(viewer.server.get_clients()) == 1)
        # a dimension
        press(tab, "Change")
        choose(tab, "Pivot", "C")
        until(tab, lambda: panels.pivot.value == "C")
        enter(tab, "At", "0.3")
        until(tab, lambda: abs(session.mechanism["C"].at[0] - 0.3) < 1e-12)
        assert closure(viewer) < 1e-12
        choose(tab, "Part", "none")  # its gizmo would cover that of the pivot
        until(tab, lambda: not panels.gizmo.visible)
        before = np.array(session.mechanism["C"].at)

        def drag_pivot() -> None:  # again, if the page has not drawn the handle yet
            drag(tab, viewer, panels.handle, np.array([0.03, 0.02, 0.0]))

        until(tab, lambda: np.linalg.norm(session.mechanism["C"].at - before) > 0.02, drag_pivot)
        assert session.mechanism["C"].at[2] == pytest.approx(0.0, abs=1e-9)
        assert closure(viewer) < 1e-12
        assert tab.errors() == []
        file = viewer.save(tmp_path / "replay.html")
        tab.open(file)  # a page of a server that stops would complain
    finally:
        viewer.stop()
    assert file.stat().st_size < 2e6
    until(tab, lambda: tab.run("document.querySelectorAll('canvas').length"))
    tab.run("new Promise(done => setTimeout(done, 2000))")
    assert tab.errors() == []
    assert [one for one in tab.requests() if one.startswith(("http", "ws"))] == []


def hostile_robot(folder: Path) -> Path:
    """Write a URDF whose names and mesh are HTML that runs a script."""
    html = (
        "<iframe srcdoc=\"<script>parent.document.title='run'</script>\"></iframe><img src=x onerror=run()>"
    )
    coded = html.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    file = folder / "evil.urdf"
    file.write_text(
        f'<robot name="{coded}"><link name="a"/><link name="b {coded}"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial><visual><geometry>'
        f'<mesh filename="{coded}"/></geometry></visual></link><joint name="j {coded}" type="continuous">'
        f'<parent link="a"/><child link="b {coded}"/><axis xyz="0 0 1"/></joint></robot>'
    )
    return file


def test_a_hostile_robot_runs_no_script(tab: Tab, tmp_path: Path) -> None:
    """Names, mesh files, tables and echoes of a hostile file are text of the page."""
    file = hostile_robot(tmp_path)
    viewer = kic.from_urdf(file).view(visuals=file, port=8981)
    panels = viewer._panels

    def is_shown(text: str) -> bool:
        return text in tab.run("document.body.innerText")

    try:
        tab.open(viewer.url)
        until(tab, lambda: is_shown("Meshes are not shown: <iframe srcdoc="))
        until(tab, lambda: is_shown("j <iframe srcdoc="))  # the slider
        press(tab, "See")
        press(tab, "Numbers", INPUT)
        until(tab, lambda: panels.tables.value and is_shown("static efforts"))
        choose(tab, "Part", viewer._session.parts()[0])
        until(tab, lambda: panels.gizmo.visible)
        echoed = "<img src=x onerror=run()>"
        enter(tab, "Names", echoed)
        until(tab, lambda: panels.names.value == echoed)
        press(tab, "Use these coordinates")
        until(tab, lambda: is_shown(f"No part '{echoed}'"))
        assert tab.run("document.querySelectorAll('iframe, img[src=x]').length") == 0
        assert tab.run("document.title") != "run"
        assert tab.errors() == []
    finally:
        tab.open("about:blank")
        viewer.stop()


CONNECT = """
new Promise(done => {
  const one = new WebSocket("%s", ["viser-v%s"]);
  one.onopen = () => done("open");
  one.onerror = () => done("refused");
})
"""


def test_other_sites_are_refused(tab: Tab, tmp_path: Path) -> None:
    """A page of another site opens no WebSocket, with the token or without; it may show the page inline."""
    # a browser keeps connections to the port of a server that has stopped
    viewer = kic.load("four-bar").view(port=8982)
    address, _, token = viewer.url.partition("?token=")
    port = viewer.server.get_port()
    socket = f"ws://127.0.0.1:{port}/{token}"
    (tmp_path / "index.html").write_text("<p>another site</p>")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    other = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        # the page itself connects
        tab.open(viewer.url)
        until(tab, viewer.server.get_clients)
        assert tab.run(CONNECT % (socket, viser.__version__)) == "open"
        tab.open(f"http://localhost:{other.server_port}/index.html")
        for path in (socket, f"ws://127.0.0.1:{port}", f"ws://localhost:{port}/{token}"):
            assert tab.run(CONNECT % (path, viser.__version__)) == "refused"
        # inline, as in a notebook at another address
        before = set(viewer.server.get_clients())
        tab.run(f"document.body.innerHTML = {viewer._repr_html_()!r}")
        until(tab, lambda: viewer.server.get_clients().keys() - before)
        # browsers find this computer under names below localhost; those of others may lead to it too
        tab.open(f"http://evil.localhost:{port}/{token}/")
        assert "not served under this name" in tab.run("document.body.innerText")
        tab.open(address)
        assert "?token=" in tab.run("document.body.innerText")
    finally:
        tab.open("about:blank")
        viewer.stop()
        other.shutdown()
        other.server_close()


def drag_tip(tab: Tab, viewer: kic.results.Viewer) -> None:
    """Drag the gizmo of the tip in the direction that decreases the driver."""
    session = viewer._session
    toward = session.configuration.coefficients("tip", order=1, wrt=session.drivers).G[:, 0]
    drag(tab, viewer, viewer._panels.gizmo, -0.15 * toward / np.linalg.norm(toward))


def drag(tab: Tab, viewer: kic.results.Viewer, gizmo: Any, by: np.ndarray) -> None:
    """Drag a gizmo by its square in the plane."""
    start = gizmo.position + 0.28 * gizmo.scale * np.array([1.0, 1.0, 0.0])
    one, other = pixel(viewer, start), pixel(viewer, start + by)
    tab.mouse("mouseMoved", *one)
    tab.mouse("mousePressed", *one)
    for share in np.linspace(0, 1, 8):
        tab.mouse("mouseMoved", *(one + share * (other - one)))
        tab.run("new Promise(done => setTimeout(done, 60))")
    tab.mouse("mouseReleased", *other)
    until(tab, lambda: not (viewer._panels._dragged or viewer._panels._pulled))
