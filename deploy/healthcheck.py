"""Exits with 0 if the server on this machine is ready, else with 1: healthcheck.py [PORT]."""

import http.client
import sys

# Not urllib, which would ask a proxy that the environment names.
server = http.client.HTTPConnection("127.0.0.1", int((sys.argv[1:] or ["8501"])[0]), timeout=5)
try:
    server.request("GET", "/readyz")
    sys.exit(server.getresponse().status != 200)
except (OSError, http.client.HTTPException):
    sys.exit(1)
