"""A web server that does as a test says."""

import hashlib
import http.server
import threading

import pytest

CONTENT = bytes(range(256)) * 400


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves ``server.files``, of one request after the other ``server.cuts`` bytes.

    What is in ``server.raw`` is sent as it is.
    """

    def do_GET(self):
        server = self.server
        server.requests.append((self.path, self.headers.get("Range"), self.headers["User-Agent"]))
        if server.failures:
            self.send_error(server.failures.pop(0))
            return
        if self.path in server.raw:
            self.wfile.write(server.raw[self.path])
            self.close_connection = True
            return
        if self.path not in server.files:
            self.send_error(404)
            return
        content = server.files[self.path]
        tag = f'"{hashlib.md5(content).hexdigest()}"'
        start = 0
        if server.ranges and (server.careless or self.headers.get("If-Range", tag) == tag):
            start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        if start > len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("ETag", tag)
        self.end_headers()
        end = start + server.cuts.pop(0) if server.cuts else len(content)
        self.wfile.write(content[start:end])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files, server.cuts, server.failures = {"/file.bin": CONTENT}, [], []
        server.raw = {}
        server.requests, server.ranges, server.careless = [], True, False
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        server.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield server
        server.shutdown()
