"""The batch server in a thread of this process, for what the command line does not offer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from extraction_pipeline.batch_server.app import create_app, show_connections
from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline_tests.batch_server.process import wait_until


@contextmanager
def served(config: ServerConfig) -> Iterator[str]:
    """A server that runs until the block ends; its root URL."""
    app = create_app(config)
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_config=None, access_log=False, lifespan="on")
    )
    show_connections(app, server)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)
