"""A hub on this machine: serves folders as models the way the Hugging Face hub does."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SILENCE = 30.0  # seconds


@contextmanager
def hub(
    models: Mapping[str, Path], *, refuses: int | None = None, silent_on: str = "\0"
) -> Iterator[str]:
    """Serve ``models`` (id to folder) and give the address; other paths are answered with 404."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            if silent_on in self.path:
                over.wait(SILENCE)
                return
            for model_id, folder in models.items():
                files = sorted(path for path in folder.rglob("*") if path.is_file())
                names = {str(path.relative_to(folder)): path for path in files}
                about = f"/api/models/{model_id}"
                if self.path.split("?")[0] in (about, f"{about}/revision/main"):
                    siblings = [{"rfilename": name} for name in names]
                    info = {"id": model_id, "sha": COMMIT, "siblings": siblings}
                    self.answer(json.dumps(info).encode(), "application/json")
                    return
                if self.path.split("?")[0] == f"{about}/tree/{COMMIT}":
                    tree = [
                        {"type": "file", "path": name, "size": path.stat().st_size, "oid": name}
                        for name, path in names.items()
                    ]
                    self.answer(json.dumps(tree).encode(), "application/json")
                    return
                start = f"/{model_id}/resolve/{COMMIT}/"
                if self.path.startswith(start) and refuses is None:
                    path = folder / self.path.removeprefix(start)
                    if path.is_file():
                        self.answer(path.read_bytes(), "application/octet-stream")
                        return
            self.send_response(404 if refuses is None else refuses)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def answer(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        over.set()
        server.shutdown()
        server.server_close()
