extension ProcessTests.Permission {
    /// Comes again and again on one lane, and says what it gets: 'frame' and when that was captured, 'in' and 'out'
    /// when its connection comes and goes; of a ring also 'written' when memory changes that it was given before. At a
    /// ring's door, which is shut before it, it tries again when the bus says that something is decided about it, and
    /// with each heartbeat besides.
    static let watcher = #"""
        import array, json, mmap, os, socket, struct, sys
        lane, directory, rendition, device = sys.argv[1:5]
        topic = f"level/{device}/" if lane == "level" else f"{lane}/{device}/{rendition}/"
        def say(*words):
            print(*words, flush=True)
        def by_message():
            import zmq
            from zmq.utils.monitor import recv_monitor_message
            context = zmq.Context()
            sub = context.socket(zmq.SUB)
            sub.rcvhwm = 2
            monitor = sub.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
            sub.subscribe(topic.encode())
            sub.connect(f"ipc://{directory}/media/{device}.sock")
            poller = zmq.Poller()
            poller.register(sub, zmq.POLLIN)
            poller.register(monitor, zmq.POLLIN)
            was_in = False

            def take():
                header = json.loads(sub.recv_multipart()[1])
                if "error" not in header:
                    say("frame", header.get("timestamp", header)["monotonic"])

            while True:
                ready = dict(poller.poll())
                if sub in ready:
                    take()
                if monitor in ready:
                    event = recv_monitor_message(monitor)["event"]
                    if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                        was_in = True
                        say("in")
                    elif was_in:
                        was_in = False
                        # What came before is said before.
                        while sub.poll(0):
                            take()
                        say("out")
        class Ring:
            def __init__(self, descriptor):
                self.map = mmap.mmap(descriptor, os.fstat(descriptor).st_size, prot=mmap.PROT_READ)
                self.pixels = struct.unpack_from("<I", self.map, 28)[0]
                self.slot_bytes = struct.unpack_from("<Q", self.map, 32)[0]
                self.slots, self.record_bytes, self.table = (
                    struct.unpack_from("<I", self.map, at)[0] for at in (12, 20, 24))
                self.count = 0
            def news(self):
                count, newest = struct.unpack_from("<II", self.map, 448)
                if count == self.count or newest >= self.slots:
                    return None
                self.count = count
                return struct.unpack_from("<q", self.map, self.table + newest * self.record_bytes + 24)[0]
            def is_closed(self):
                return struct.unpack_from("<I", self.map, 456)[0] != 0
            def look(self):
                # Some lines of each slot: a picture that moves changes them.
                parts = [self.map[:self.pixels]]
                for slot in range(self.slots):
                    start = self.pixels + slot * self.slot_bytes
                    parts += [self.map[start + step:start + step + 2048] for step in range(0, self.slot_bytes, 65536)]
                return hash(b"".join(parts))
        def by_ring():
            import zmq
            news = zmq.Context().socket(zmq.SUB)
            news.subscribe(f"state/authorization/{os.getuid()}/".encode())
            news.subscribe(b"heartbeat/")
            news.connect(f"ipc://{directory}/events.sock")
            old = []
            while True:
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                connection.connect(f"{directory}/media/{device}.ring")
                connection.settimeout(0.01)
                try:
                    connection.send(json.dumps({"rendition": rendition}).encode())
                except OSError:
                    pass
                ring = None
                while True:
                    try:
                        data, ancillary, _, _ = connection.recvmsg(65536, 64)
                    except TimeoutError:
                        data = None
                    except OSError:
                        data, ancillary = b"", []
                    if data == b"":
                        break
                    if data is not None:
                        for _, _, descriptors in ancillary:
                            descriptor = array.array("i", descriptors)[0]
                            if ring is None:
                                say("in")
                            ring = Ring(descriptor)
                            say("ring", json.loads(data)["ring"])
                            os.close(descriptor)
                        if not ancillary:
                            say("error", json.loads(data)["error"]["reason"])
                    if ring is not None and (time := ring.news()) is not None:
                        say("frame", time)
                if ring is not None:
                    say("out")
                    old.append([ring, None])
                connection.close()
                while True:
                    for entry in old:
                        if entry[0].is_closed():
                            look = entry[0].look()
                            if entry[1] not in (None, look):
                                say("written")
                            entry[1] = look
                    news.recv_multipart()
                    if not news.poll(0):
                        break
        by_ring() if lane == "ring" else by_message()
        """#
}
