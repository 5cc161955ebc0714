"""A web server that misbehaves as a test says."""

import hashlib
import http.server
import time

import pytest


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves ``server.files``; the next of ``server.faults`` says what goes wrong.

    A fault is an HTTP error, 0 for silence, or the negative number of bytes until a cut.
    A file that begins with ``HTTP/`` is sent as it is.
    """

    def do_GET(self):
        server, content = self.server, self.server.files.get(self.path)
        server.requests.append((self.path, self.headers.get("Range")))
        fault = server.faults.pop(0) if server.faults else None
        if fault == 0:
            time.sleep(3)
        if content is None or (fault or 0) > 0:
            return self.send_error(404 if content is None else fault)
        self.close_connection = True
        if content.startswith(b"HTTP/"):
            return self.wfile.write(content)
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1]) if server.ranges else 0
        if start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("ETag", hashlib.md5(content).hexdigest())
        self.end_headers()
        end = len(content) if fault is None else start - fault
        return self.wfile.write(content[start:end])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(serve):
    """A server that notes its ``requests`` as (path, range)."""
    server = serve(Handler)
    server.files, server.faults, server.ranges, server.requests = {}, [], True, []
    return server
