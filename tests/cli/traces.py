"""Trace files by their sections (lib/trace/README.md)."""

import zlib

HEAD = b"baton trace 1\n"
RANK, GROUP = 1, 2  # kinds of sections


def sections(trace):
    """(kind, content) of each."""
    at, found = len(HEAD), []
    while at < len(trace):
        end = at + 13 + int.from_bytes(trace[at + 5:at + 9], "little")
        found.append((trace[at + 4], trace[at + 13:end]))
        at = end
    return found


def written(some):
    text = HEAD
    for kind, content in some:
        checksum = zlib.crc32(bytes([kind]) + content)
        text += b"\xb5\nTS" + bytes([kind])
        text += len(content).to_bytes(4, "little") + checksum.to_bytes(4, "little") + content
    return text


def parts(trace):
    """The sections of each rank, all of whose numbers are below 128."""
    ranks = {}
    for kind, content in sections(trace):
        ranks.setdefault(content[0], []).append((kind, content))
    return ranks


def moved(trace, by, ranks):
    """The same recording, made by the last ranks of a larger program: rank r is r + by of `ranks`."""
    changed = []
    for kind, content in sections(trace):
        content = bytearray(content)
        content[0] += by
        if kind == RANK:
            content[1] = ranks
        if kind == GROUP:  # rank, number, number among the same members, how many, members
            for member in range(4, 4 + content[3]):
                content[member] += by
        changed.append((kind, bytes(content)))
    return written(changed)
