import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests.Permission {
    @Test(arguments: Lane.ofPictures, ["native", "gray:320x0"])
    func `pictures need permission, and stop when it is revoked`(
        _ lane: Lane, _ rendition: String
    ) async throws {
        let bus = try await bus()
        let witness = try FrameReader(bus, "cam0", Self.witnessed)
        let stranger = try watch(bus, lane, as: Self.user, rendition)
        // By trying it has asked; it was at the door, and was not let in.
        try await isAsked(bus, Self.user)
        try read(witness, 5)
        #expect(lines(stranger, "frame").isEmpty && lines(stranger, "in").isEmpty)

        try await allow(bus, Self.user)
        try await eventually { lines(stranger, "frame").count > 5 }

        var sequences: [Int64] = []
        var streams: [String] = []
        func keep(_ frame: FrameReader.Frame) {
            if streams.last != frame.stream { (streams, sequences) = (streams + [frame.stream], []) }
            // Within a stream nothing is missing.
            if let last = sequences.last { #expect(frame.sequence == last + 1) }
            sequences.append(frame.sequence)
        }
        try read(witness, 3, keep)
        try await deny(bus, Self.user)
        try await eventually { lines(stranger, "out").count == 1 }
        let count = lines(stranger, "frame").count
        // Only where it had the very memory that the camera writes to, that has to be another, within a second.
        let isSharing = lane == .ring && rendition == "native"
        let deadline = Deadline.usual
        while isSharing, streams.count < 2, !deadline.hasPassed { try read(witness, 1, keep) }
        try read(witness, 15, keep)
        #expect(lines(stranger, "frame").count == count, "\(stranger.standardOutput)")
        #expect(lines(stranger, "in").count == 1)
        #expect(lines(stranger, "written").isEmpty)
        #expect(streams.count == (isSharing ? 2 : 1))

        // Allowed again, it comes in by itself, and no connection of it was given up.
        try await allow(bus, Self.user)
        try await eventually { lines(stranger, "frame").count > count + 5 }
        #expect(lines(stranger, "written").isEmpty)
        #expect(stranger.standardError == "")
        try await bus.stop()
    }

    @Test func `a permitted reader continues in another ring when another reader loses permission`() async throws {
        let bus = try await bus()
        let other = OtherUser.second
        try await allow(bus, Self.user)
        try await allow(bus, other)
        for rendition in ["gray:320x0", "native"] {
            let loser = try watch(bus, .ring, as: Self.user, rendition)
            let keeper = try watch(bus, .ring, as: other, rendition)
            try await eventually { lines(loser, "frame").count > 3 && lines(keeper, "frame").count > 3 }
            let shared = try #require(lines(keeper, "ring").last)
            #expect(lines(loser, "ring").last == shared)
            try await deny(bus, Self.user)
            try await eventually { lines(keeper, "ring").count == 2 && lines(loser, "out").count == 1 }
            let count = lines(keeper, "frame").count
            try await eventually { lines(keeper, "frame").count > count + 5 }
            #expect(lines(keeper, "out").isEmpty && lines(keeper, "ring").last != shared)
            #expect(lines(loser, "written").isEmpty)
            try await allow(bus, Self.user)
            for program in [loser, keeper] {
                program.process.send(SIGKILL)
                _ = try await program.end()
            }
        }
        try await bus.stop()
    }

    @Test(arguments: ["mapped", "path"])
    func `a reader that left a ring before its permission was revoked reads nothing new in it`(
        _ how: String
    ) async throws {
        let bus = try await bus()
        try await allow(bus, Self.user)
        // Its memory is mapped still, or can be opened again, when its connection has ended.
        let script = """
            import array, mmap, os, signal, socket, struct, sys
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            connection.connect(sys.argv[1] + "/media/cam0.ring")
            connection.send(b'{}')
            data, ancillary, _, _ = connection.recvmsg(65536, 64)
            descriptor = array.array("i", ancillary[0][2])[0]
            size = os.fstat(descriptor).st_size
            if sys.argv[2] == "mapped":
                memory = mmap.mmap(descriptor, size, prot=mmap.PROT_READ)
            else:
                path = os.open(f"/proc/self/fd/{descriptor}", os.O_PATH)
            os.close(descriptor)
            connection.close()
            print("mapped", flush=True)
            while signal.sigwait({signal.SIGUSR1}):
                if sys.argv[2] == "path":
                    descriptor = os.open(f"/proc/self/fd/{path}", os.O_RDONLY)
                    memory = os.pread(descriptor, 512, 0)
                    os.close(descriptor)
                count, newest, closed = struct.unpack_from("<III", memory, 448)
                print("count", count, closed, flush=True)
            """
        let witness = try FrameReader(bus, "cam0", Self.witnessed)
        let stranger = try bus.start(OtherUser.python, ["-c", script, bus.directory.path, how], as: Self.user)
        try await eventually { lines(stranger, "mapped").count == 1 }
        // The worker looks for rings that nobody has meanwhile.
        try read(witness, 70)
        /// What it sees now.
        func look() async throws -> Substring? {
            let before = lines(stranger, "count").count
            stranger.process.send(SIGUSR1)
            try await eventually { lines(stranger, "count").count > before }
            return lines(stranger, "count").last
        }
        #expect(try await look()?.hasSuffix(" 0") == true)
        try await deny(bus, Self.user)
        try await eventually { try await look()?.hasSuffix(" 0") == false }
        let last = try await look()
        try read(witness, 10)
        #expect(try await look() == last)
        try await bus.stop()
    }

    @Test func `the ring socket reports why it refuses, and returns no memory`() async throws {
        let bus = try await bus()
        let script = """
            import json, socket, sys
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            connection.connect(sys.argv[1] + "/media/cam0.ring")
            data, ancillary, _, _ = connection.recvmsg(65536, 64)
            print(json.loads(data)["error"]["reason"], len(ancillary), connection.recv(10))
            # Whenever the request comes, the answer is not lost over it.
            reasons = set()
            for _ in range(50):
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                connection.connect(sys.argv[1] + "/media/cam0.ring")
                connection.send(b'{"rendition":"native"}')
                reasons.add((json.loads(connection.recv(65536))["error"]["reason"], connection.recv(10)))
                connection.close()
            print(*reasons)
            """
        let result = try await bus.run(OtherUser.python, ["-c", script, bus.directory.path], as: Self.user)
        #expect(result.standardOutput == "unauthorized 0 b''\n('unauthorized', b'')\n", "\(result)")
        try await isAsked(bus, Self.user)
        try await bus.stop()
    }
}
