"""A server on the loopback, for stand-ins of Kubeflow and Kubernetes."""

import http.server
import json
import threading
from urllib.parse import parse_qs, urlsplit


class RefusedError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class LoopbackServer:
    """Answers each request with what `answer` returns: text, or JSON."""

    def __init__(self, port=0):
        outer = self
        self.refuses = None  # the error that each request gets

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                parts = urlsplit(self.path)
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    code, answer = 200, outer.answer(self.command, parts.path, query, raw, self.headers)
                except ConnectionAbortedError:
                    self.close_connection = True
                    return
                except RefusedError as error:
                    code, answer = error.code, {"kind": "Status", "message": str(error)}
                is_text = isinstance(answer, str)
                content = (answer if is_text else json.dumps(answer)).encode()
                self.send_response(code)
                self.send_header("Content-Type", "text/plain" if is_text else "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self):
                self.do_GET()

            def do_DELETE(self):
                self.do_GET()

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
