"""Connections over bare sockets."""

import socket
from contextlib import closing

from tests.serve.running import PATIENCE_S


def connected(server):
    return closing(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S))


def read_all(client):
    answer = b""
    try:
        while more := client.recv(65536):
            answer += more
    except ConnectionError:
        pass
    return answer


def flood(server, start, piece, n=1000):
    """The status of the answer to a request that begins like this and goes on and on; 0 for none."""
    with connected(server) as client:
        try:
            client.sendall(start)
            for _ in range(n if piece else 0):
                client.sendall(piece)
            answer = client.recv(65536)
        except ConnectionError:
            return 0
    return int(answer.split()[1]) if answer else 0
