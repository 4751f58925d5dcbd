"""Who reads, however slowly, is left alone; who does not is let go."""

from gpulse.api.unsent import LEAST_BYTES, LOOK_SECONDS, MOST_ADDED, STALLED_SECONDS, Unsent

LOOKS = round(STALLED_SECONDS / LOOK_SECONDS)


class Peer:
    """A connection, and its transport."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.aborted = False
        self.transport = self

    def get_write_buffer_size(self) -> int:
        return self.size

    def abort(self) -> None:
        self.aborted = True


class Watch:
    def __init__(self, *peers: Peer) -> None:
        self.now = 1000.0
        self.peers = list(peers)
        self.unsent = Unsent(lambda: self.now)

    def look(self) -> int:
        ended = self.unsent.look([peer for peer in self.peers if not peer.aborted])
        self.now += LOOK_SECONDS
        return ended


def test_a_peer_that_takes_nothing_is_let_go():
    peer = Peer(1_000_000)
    watch = Watch(peer)
    assert [watch.look() for _ in range(LOOKS)] == [0] * LOOKS
    assert watch.look() == 1
    assert peer.aborted


def test_so_is_one_that_has_more_and_more_waiting():
    peer = Peer(1000)
    watch = Watch(peer)
    for _ in range(LOOKS + 1):
        watch.look()
        peer.size += MOST_ADDED // (LOOKS + 2)
    assert peer.aborted


def test_and_one_that_takes_a_byte_now_and_then():
    peer = Peer(1_000_000)
    watch = Watch(peer)
    for _ in range(LOOKS + 1):
        watch.look()
        peer.size -= 1
    assert peer.aborted


def test_a_slow_peer_stays():
    peer = Peer(10_000_000)
    watch = Watch(peer)
    for _ in range(10 * LOOKS):
        watch.look()
        # 1.6 kB a second.
        peer.size -= 2 * LEAST_BYTES
    assert not peer.aborted


def test_a_viewer_whose_next_frame_waits_stays():
    peer = Peer(0)
    watch = Watch(peer)
    for turn in range(10 * LOOKS):
        watch.look()
        peer.size = 500_000 if turn % 2 else 900_000
    assert not peer.aborted


def test_nothing_is_kept_of_those_that_are_gone():
    watch = Watch(*(Peer(1000) for _ in range(10)))
    watch.look()
    watch.peers.clear()
    watch.look()
    assert watch.unsent._seen == {}
