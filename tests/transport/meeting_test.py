"""Processes that meet at a TCP address, without MPI: meeting_test.py PROGRAM ucx|shm|any WITH-UCX"""

import contextlib
import itertools
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from ports import free_port  # noqa: E402

with_ucx = sys.argv.pop() == "true"
kind = sys.argv.pop()
program = sys.argv.pop()


def without_ptrace():
    """Begins a command that may not look at other processes, of root, too."""
    prefix = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    return prefix if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0 else []


def meet(*ranks, address=None, limit=20000, before=lambda port: None, pause=0.0, secrets=(), prefix=(),
         environments=(), **environment):
    """What each of the processes (rank, size) says, and its exit code. Each may have a secret, and an
    environment of its own."""
    port = free_port()
    address = address or f"127.0.0.1:{port}"
    processes = []
    for (rank, size), secret, special in itertools.zip_longest(ranks, secrets, environments):
        own = environment if secret is None else environment | {"BATON_SECRET": secret}
        own = own | (special or {})
        command = [*prefix, program, kind, str(rank), str(size), address, str(limit)]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                          env=os.environ | own))
        time.sleep(pause)
        if rank == 0:
            before(port)
    try:
        return [(p.communicate(timeout=60)[0].strip(), p.returncode) for p in processes]
    finally:
        for p in processes:
            p.kill()
            p.wait()


@contextlib.contextmanager
def another_place(serve):
    """An address where `serve(socket)`, in a thread, takes the place of rank 0."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        place.listen()
        thread = threading.Thread(target=serve, args=(place,))
        thread.start()
        yield "127.0.0.1:%d" % place.getsockname()[1]
        place.shutdown(socket.SHUT_RDWR)
        thread.join()


class Meeting(unittest.TestCase):
    def test_a_port_is_given_once(self):
        first = free_port()
        with unittest.mock.patch("random.randrange", side_effect=[first] * 999 + [0]):
            self.assertNotEqual(free_port(), first)
        support = Path(__file__).resolve().parent.parent / "support"
        other = f"import ports; ports.random.randrange = lambda *_: {first}; ports.free_port()"
        done = subprocess.run([sys.executable, "-c", other], cwd=support, capture_output=True, text=True)
        self.assertIn("found none", done.stderr)

    def test_everybody_comes(self):
        for size in 1, 2, 3, 5, 8:
            ranks = [(rank, size) for rank in range(size)]
            for order in ranks, ranks[::-1]:
                self.assertEqual(meet(*order), [(str(size * (size + 1) // 2), 0)] * size)

    def test_nobody_waits_for_a_process_that_was_killed(self):
        """The farewell is longer than this test may take."""
        for size in 2, 4:
            ranks = [(rank, size) for rank in range(size)]
            said = meet(*ranks, KILLED=str(size - 1))
            self.assertEqual(said, [(str(size * (size + 1) // 2), 0)] * (size - 1) + [("", -9)])

    @unittest.skipUnless(kind == "shm", "memory is shared through /proc")
    def test_ranks_that_may_not_look_at_each_other(self):
        said = meet((0, 3), (1, 3), (2, 3), prefix=without_ptrace(), UNREADABLE="1")
        for sentence, code in said:
            self.assertEqual(code, 1)
            self.assertRegex(sentence, r"^transport: rank \d: expected to open the shared memory of rank \d, "
                                       r"process \d+, but found: Permission denied$")

    @unittest.skipUnless(kind == "any", "it has no choice")
    def test_the_choice(self):
        def names(*wishes, **more):
            ranks = [(rank, 3) for rank in range(3)]
            wishes = [{"BATON_TRANSPORT": wish} if wish else {} for wish in wishes] or [{}] * 3
            return meet(*ranks, environments=wishes, NAMED="1", **more)

        self.assertEqual(names(), [("shm 6", 0)] * 3)
        self.assertEqual(names("shm", "shm", "shm"), [("shm 6", 0)] * 3)
        if with_ucx:
            self.assertEqual(names("ucx", "ucx", "ucx"), [("ucx 6", 0)] * 3)
            self.assertEqual(names(BATON_UCX_TLS="tcp,self"), [("ucx 6", 0)] * 3)
            # A host of its own for each rank: a machine may pose as several.
            if subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode == 0:
                prefix = ["unshare", "--uts", "sh", "-c", 'hostname host-$$ && exec "$0" "$@"']
                self.assertEqual(names(prefix=prefix), [("ucx 6", 0)] * 3)
            # Ranks that may not look at each other.
            self.assertEqual(names(prefix=without_ptrace(), UNREADABLE="1"), [("ucx 6", 0)] * 3)
        self.all_hear(names("", "ucx", ""), "mismatch: BATON_TRANSPORT: expected the same on all ranks, "
                                            "found none on rank 0 and ucx on rank 1")
        self.all_hear(names("", "", "tcp"), "invalid_argument: BATON_TRANSPORT: expected shm or ucx, found "
                                            "'tcp' on rank 2")
        # A program's choice for its ranks of MPI is none here.
        self.assertEqual(names("", "mpi", ""), [("shm 6", 0)] * 3)

    def test_names_and_ipv6(self):
        for host in "localhost", "[::1]":
            said = meet((0, 2), (1, 2), address=f"{host}:{free_port()}")
            self.assertEqual(said, [("3", 0)] * 2)

    @unittest.skipUnless(kind == "ucx", "UCX has an environment of its own")
    def test_environment(self):
        """Baton's own variables go before those that every user of UCX heeds."""
        self.assertEqual(meet((0, 1), BATON_UCX_TLS="tcp,self", UCX_TLS="none"), [("1", 0)])
        # Smaller segments of the user's hold, else UCX refuses its own.
        self.assertEqual(meet((0, 2), (1, 2), BATON_UCX_TLS="tcp,self", UCX_TCP_RX_SEG_SIZE="32k"),
                         [("3", 0)] * 2)
        # Without TCP, UCX has nothing to warn of.
        self.assertEqual(meet((0, 2), (1, 2), BATON_UCX_TLS="sysv,self"), [("3", 0)] * 2)
        for refused in {"BATON_UCX_TLS": "none", "UCX_TLS": "tcp,self"}, {"UCX_TLS": "none"}:
            ((sentence, code),) = meet((0, 1), **refused)
            self.assertEqual(code, 1)
            self.assertIn("transport: ucp_init was expected to succeed", sentence)

    def test_strangers_are_ignored(self):
        strangers = []

        def come(port):
            for text in b"GET / HTTP/1.0\r\n\r\n" * 3, b"":
                strangers.append(socket.create_connection(("127.0.0.1", port)))
                strangers[-1].sendall(text)

        self.assertEqual(meet((0, 2), (1, 2), before=come, pause=0.5), [("3", 0)] * 2)
        for stranger in strangers:
            stranger.close()

    def test_strangers_without_end(self):
        """Strangers that send without end, or nothing, and come all the time hold up nobody."""
        over = threading.Event()
        threads = []

        def pester(port, bytes_at_once):
            stay = []
            while not over.is_set():
                try:
                    stay.append(socket.create_connection(("127.0.0.1", port), timeout=1))
                    while bytes_at_once and not over.is_set():
                        stay[-1].sendall(b"\0" * bytes_at_once)
                except OSError:
                    time.sleep(0.01)
                if len(stay) > 100:
                    stay.pop(0).close()
            for one in stay:
                one.close()

        def begin(port):
            for bytes_at_once in 0, 1, 100_000:
                threads.append(threading.Thread(target=pester, args=(port, bytes_at_once)))
                threads[-1].start()

        try:
            self.assertEqual(meet((0, 3), (1, 3), (2, 3), before=begin, pause=0.5), [("6", 0)] * 3)
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def test_a_shared_secret(self):
        self.assertEqual(meet((0, 3), (1, 3), (2, 3), BATON_SECRET="s3cret"), [("6", 0)] * 3)

    def test_another_secret(self):
        """A rank without the secret hears so, and the others go on without it."""
        for theirs, found in ("", "has none"), ("other", "has another one"):
            said = meet((0, 2), (1, 2), (1, 2), secrets=["s3cret", theirs, "s3cret"], pause=0.3)
            self.assertEqual([said[0], said[2]], [("3", 0)] * 2)
            sentence, code = said[1]
            self.assertEqual(code, 1)
            self.assertRegex(sentence, r"^transport: rank 1 was expected to have the secret "
                                       rf"\(BATON_SECRET\) of rank 0 at 127.0.0.1:\d+, but {found}$")

    def test_only_ranks_with_another_secret(self):
        said = meet((0, 2), (1, 2), secrets=["s3cret", "other"], limit=1500)
        self.assertIn("timeout: 2 ranks were expected", said[0][0])
        self.assertIn("did not come: 1; 1 came with another secret (BATON_SECRET)", said[0][0])
        self.assertNotIn("s3cret", said[0][0] + said[1][0])

    def test_a_place_without_the_secret(self):
        """A rank with a secret does not believe one that listens without it."""
        said = meet((0, 2), (1, 2), secrets=["", "s3cret"], limit=1500)
        self.assertIn("but has another one", said[1][0])

    def test_a_place_that_pretends(self):
        """A program that speaks as rank 0 but has no proof is found out."""
        with another_place(self.pretend) as address:
            ((sentence, code),) = meet((1, 2), address=address, BATON_SECRET="s3cret")
        self.assertEqual(code, 1)
        self.assertIn("but found that the other side does not know it", sentence)

    @staticmethod
    def pretend(place):
        guest, _ = place.accept()
        guest.recv(1000)
        guest.sendall(struct.pack("<Q", 0x3F6E6F7461627875) + bytes(32))
        guest.recv(1000)
        blocks = b"".join(struct.pack("<Q", 1) + block for block in (b"a", b"b"))
        guest.sendall(struct.pack("<QQ", 0, len(blocks)) + bytes(32) + blocks)
        guest.recv(1000)
        guest.close()

    def all_hear(self, said, *parts):
        self.assertEqual(len(set(said)), 1, said)
        sentence, code = said[0]
        self.assertEqual(code, 1)
        for part in parts:
            self.assertIn(part, sentence)

    def test_another_size(self):
        self.all_hear(meet((0, 3), (1, 3), (2, 4)), "mismatch: 3 ranks", "rank 2 says that there are 4")

    def test_equal_ranks(self):
        self.all_hear(meet((0, 3), (1, 3), (1, 3)), "mismatch: 3 ranks", "rank 1 came twice")

    def test_some_do_not_come(self):
        self.all_hear(meet((0, 4), (2, 4), limit=1500), "timeout: 4 ranks", "within 1500 ms",
                      "did not come: 1 3")

    def test_nobody_listens(self):
        ((sentence, code),) = meet((1, 2), limit=300)
        self.assertEqual(code, 1)
        self.assertRegex(sentence, "^timeout: rank 1 was expected to reach rank 0 at 127.0.0.1:"
                                   r"\d+ within 300 ms, but found: Connection refused$")

    def test_a_place_that_closes_at_once(self):
        def close_all(place):
            with contextlib.suppress(OSError):
                while True:
                    place.accept()[0].close()

        with another_place(close_all) as address:
            ((sentence, code),) = meet((1, 2), address=address, limit=500)
        self.assertEqual(code, 1)
        self.assertEqual(sentence, "transport: rank 1 was expected to get all ranks' addresses from rank 0 "
                                   f"at {address}, but the connection ended")

    def test_the_address_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            ((sentence, code),) = meet((0, 2), address=address)
        self.assertEqual(code, 1)
        self.assertIn("transport: rank 0 was expected to listen at " + address, sentence)
        self.assertIn("Address already in use", sentence)

    def test_addresses_by_an_exchange_of_the_program(self):
        for size in 1, 2, 3, 5:
            with tempfile.TemporaryDirectory() as folder:
                said = meet(*[(rank, size) for rank in range(size)], address=folder + "/")
            self.assertEqual(said, [(str(size * (size + 1) // 2), 0)] * size)

    def test_an_exchange_brings_wrong_blocks(self):
        for name, size, found in ("one-more", 1, "to bring 1 blocks, but brought 2"),\
                                 ("0", 1, "to bring the address of rank 0, but brought 5 bytes"):
            with tempfile.TemporaryDirectory() as folder:
                with open(f"{folder}/{name}", "w") as file:
                    file.write("block")
                said = meet((0, size), address=folder + "/")
            self.all_hear(said, "transport: the exchange of addresses was expected", found)

    def test_wrong_arguments(self):
        for rank, size in (2, 2), (-1, 2), (0, 0):
            ((sentence, code),) = meet((rank, size))
            self.assertEqual(code, 1)
            self.assertIn(f"found rank {rank} of size {size}", sentence)
        for address in "nowhere", ":80", "127.0.0.1:", "127.0.0.1:http":
            ((sentence, code),) = meet((0, 2), address=address)
            self.assertEqual(sentence, 'invalid_argument: an address "host:port" was expected, but '
                                       f'found "{address}"')


unittest.main()
