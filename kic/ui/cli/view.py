"""Command `kic view`: a mechanism in an interactive viewer."""

from __future__ import annotations

import click

from kic.ui.cli import parsing


@click.command()
@parsing.configuration_options
@parsing.names_option("--trace", "trace", "Show the curves of these points and bodies; repeatable.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Serve the page at this address; "
              "0.0.0.0 lets everyone who has the token open it.")  # fmt: skip
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True,
              help="Serve the page at this port, or at the next free one.")  # fmt: skip
@click.option("--proxy", metavar="ADDRESS", help="Address at which a proxy serves the page; "
              "{port} stands for the port.")  # fmt: skip
@click.option("--meshes", multiple=True, type=click.Path(file_okay=False, exists=True), metavar="DIRECTORY",
              help="Read meshes in this directory too; repeatable.")  # fmt: skip
def view(
    request: parsing.Request,
    trace: tuple[str, ...],
    host: str,
    port: int,
    proxy: str | None,
    meshes: tuple[str, ...],
) -> None:
    """Show MODEL in the browser, where it can be turned, moved and changed.

    \b
      kic view four-bar
      kic view gough-stewart --at L1=1.2
      kic view ./robot.urdf --port 9000

    Visual meshes of URDF, SDF and MJCF files are shown too, if they are in the directory or package of
    the file.

    The command prints the address of the page with its token, and serves it until Ctrl-C. No network is
    needed.

    Requires viser (pip install -e '.[view]' in the checkout).
    """
    from kic.ui.viewer.server import serve, stop

    request.mechanism  # noqa: B018 (its errors come before the server)
    page = serve(host, port, proxy)
    click.echo(f"The page is at {page.url}; end with Ctrl-C.")
    try:  # the page loads during slow imports
        from kic.io.library import SUFFIXES, find
        from kic.ui.viewer.viewer import open_viewer

        configuration = request.configuration()
        visuals = request.model if find(request.model).suffix.lower() in SUFFIXES[1:] else None
        names = parsing.split_names(trace, "--trace")
        open_viewer(configuration, lambda: page, trace=names, visuals=visuals, meshes=meshes).wait()
    finally:
        stop(page.server)
