"""Talk to programs of the machine."""

# %% below
import glob
import socket

known = ["\0hybridlab-" + PORT, WATCHED + "/socket", "/run/docker.sock", "/var/run/docker.sock", "/run/systemd/private"]
for path in [*known, *glob.glob("/run/**", recursive=True)]:
    try:
        with socket.socket(socket.AF_UNIX) as there:
            there.connect(path)
            there.sendall(b"MARKER")
    except OSError:
        pass
claim(1)
