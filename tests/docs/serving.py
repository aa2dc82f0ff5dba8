"""`python -m tests.docs.serving FD`: does the commands that come through a socket, each in a process of its own."""

import json
import os
import socket
import sys

from tests.forked import fork

if __name__ == "__main__":
    listener = socket.socket(fileno=int(sys.argv[1]))
    while True:
        connection, _ = listener.accept()
        asked, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        where, arguments = json.loads(asked)
        stdin, stdout, stderr = files
        command = fork("tests.docs.quickly", arguments, cwd=where, stdin=stdin, stdout=stdout, stderr=stderr)
        for number in files:
            os.close(number)
        connection.send(str(command.wait()).encode())
        connection.close()
