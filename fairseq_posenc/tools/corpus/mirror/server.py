"""A web server of one folder, for this machine alone, that can continue files and misbehave."""

import http.server
import os
import posixpath
import re
import signal
import socketserver
import sys
import urllib.parse
from typing import Any, BinaryIO, Mapping, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing
from fairseq_posenc.tools.corpus.mirror.faults import Fault, Faults
from fairseq_posenc.tools.prepare.downloads.archives import BLOCK

HOST = "127.0.0.1"
LOOK_AFTER_PARENT = 0.2
_PAGE = b"<!DOCTYPE html><html><p>This is not the file that you asked for.</p></html>\n"


class MirrorServer(http.server.ThreadingHTTPServer):
    """Serves the files of a folder; ends when the process that started this one has ended.

    Args:
        folder: what to serve.
        port: 0 for any that is free; ``server_port`` tells which.
        faults: what shall go wrong.
        verbose: write a line to stderr for every request.

    Raises:
        UsageError: no such folder, or the port cannot be had.
    """

    daemon_threads = True

    def __init__(
        self, folder: str, port: int = 0, faults: Sequence[Fault] = (), verbose: bool = False
    ):
        if not os.path.isdir(folder):
            raise UsageError(f"there is no folder {folder} to serve")
        self.folder, self.faults, self.verbose = folder, Faults(faults), verbose
        self._parent = os.getppid()
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot serve on port {port}: {reason}") from error

    @property
    def url(self) -> str:
        """The address of the folder, without a slash at its end."""
        return f"http://{HOST}:{self.server_port}"

    def server_bind(self) -> None:
        """Bind without asking for this machine's name, which takes long without a network."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def service_actions(self) -> None:
        """End with the parent process."""
        if os.getppid() != self._parent:
            sys.exit()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not mind clients that go away."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def serve(server: MirrorServer, port_file: Optional[str] = None) -> None:
    """Print the port, write it to ``port_file`` while serving, and serve until a signal or an end.

    Raises:
        UsageError: the file cannot be written.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), lambda *_: sys.exit())
    with server:
        try:
            if port_file:
                with replacing(port_file) as stream:
                    stream.write(f"{server.server_port}\n")
            print(server.server_port, flush=True)
            server.serve_forever(LOOK_AFTER_PARENT)
        finally:
            if port_file and os.path.exists(port_file):
                os.remove(port_file)


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET; with an address of another host (the server is a proxy then), drops the host."""

    server: MirrorServer
    fault = ""

    def do_GET(self) -> None:
        asked = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        path = posixpath.normpath(f"/{asked}").lstrip("/")
        self.fault = self.server.faults.next(path)
        file = os.path.join(self.server.folder, path)
        if self.fault in ("404", "500"):
            self.send_error(int(self.fault))
        elif not os.path.isfile(file):
            self.send_error(404)
        elif self.fault == "wrong":
            self._start(200, {"Content-Type": "text/html", "Content-Length": len(_PAGE)})
            self.wfile.write(_PAGE)
        else:
            with open(file, "rb") as stream:
                self._send(stream)

    def _send(self, stream: BinaryIO) -> None:
        status = os.fstat(stream.fileno())
        size = status.st_size // 2 if self.fault == "truncated" else status.st_size
        tag = f'"{status.st_mtime_ns:x}-{size:x}"'
        start, end = self._range(size, tag)
        if start >= end > 0:
            self._start(416, {"Content-Range": f"bytes */{size}", "Content-Length": 0})
            return
        partial = end - start < size
        headers = {"Content-Length": end - start, "ETag": tag, "Accept-Ranges": "bytes"}
        if partial:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        self._start(206 if partial else 200, headers)
        if self.fault == "cut":
            end -= (end - start + 1) // 2
        stream.seek(start)
        while start < end:
            start += self.wfile.write(stream.read(min(BLOCK, end - start)))

    def _range(self, size: int, tag: str) -> Tuple[int, int]:
        """Return the first byte to send, and the one after the last."""
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if not asked or not size or self.headers.get("If-Range", tag) != tag:
            return 0, size
        return int(asked[1]), min(size, int(asked[2]) + 1 if asked[2] else size)

    def _start(self, status: int, headers: Mapping[str, Any]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        if self.server.verbose:
            parts = (str(int(code)), self.path, self.headers.get("Range"), self.fault)
            print(*filter(None, parts), file=sys.stderr, flush=True)

    def log_error(self, format: str, *args: Any) -> None:
        """Say nothing: the request has been logged with its status."""
