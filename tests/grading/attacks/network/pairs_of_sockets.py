"""Fill pairs of sockets, and send open files through them."""

# %% below
import array
import socket

claim(1)
kept = []
for family in (socket.AF_UNIX, socket.AF_INET, 38, 16):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        try:
            kept += socket.socketpair(family, kind)
            kept[-1].setblocking(False)
            kept[-2].setblocking(False)
            kept[-1].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**30)
            kept[-1].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1]))])
        except OSError:
            pass
for each in kept:
    try:
        while each.send(b"1" * 2**20):
            pass
    except OSError:
        pass
