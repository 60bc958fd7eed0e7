import BusProtocol
import BusServer
import CameraBusTesting
import CaptureCore
import FrameRing
import JSON
import LinuxIO
import Testing

@testable import Delivery

@Suite("The socket for rings", .timeLimit(.minutes(1)))
final class RingSocketTests {
    private let scratch: TemporaryDirectory
    private let loop: Loop
    private let socket: RingSocket<String>
    private var clients: [RenditionClient] = []

    init() throws {
        scratch = try TemporaryDirectory()
        loop = try Loop()
        socket = try RingSocket(
            loop, path: "\(scratch.path)/cam0.ring", mode: 0o600, group: nil, perUser: 10, total: 10, budget: 1 << 20,
            RingRemainders(), unauthorized: BusError(.unauthorized, "not allowed"))
        socket.admits = { _ in true }
        socket.form = { text throws(BusError) in text }
        socket.onRequest = { [unowned self] _, client in clients.append(client) }
    }

    private func ring(_ number: Int) throws -> RingWriter {
        let description = RingDescription(
            ring: "000000000000000\(number)", stream: "s", device: "cam0", rendition: "native", format: 1, width: 8,
            height: 8, planes: [RingDescription.Plane(offset: 0, stride: 8, bytes: 64)], keep: 0, slots: 0,
            slotBytes: 4096)
        return try RingWriter(description, RingLedger(filling: 1, keep: 1, lending: 0))
    }

    private func request(_ request: JSONValue) throws -> PacketSocket {
        let client = try PacketSocket(connectingTo: "\(scratch.path)/cam0.ring")
        _ = try client.send(request.serialized)
        return client
    }

    @Test("of the bus's own processes the user counts that they read for, and their rings count for nobody")
    func owner() throws {
        let recorder = try request(["rendition": "native", "owner": 4321])
        #expect(try loop.run { self.clients.map(\.uid) == [4321] })
        var own: PacketSocket? = try request(["rendition": "native", "owner": -1])
        #expect(try loop.run { self.clients.map(\.uid) == [4321, CurrentProcess.uid] })
        let ring = try ring(1)
        #expect(own != nil)
        own = nil
        #expect(try loop.run { self.socket.count == 1 })
        socket.offer("native", ring)
        #expect(try recorder.receive(maximumBytes: 1024)?.descriptor != nil)
        #expect(!socket.counts(ring.plan.description.ring))
    }

    @Test("a user without permission any more gets no ring that the end of another reader has made")
    func expelled() throws {
        let both = [try request(["rendition": "one"]), try request(["rendition": "two"])]
        #expect(try loop.run { self.clients.count == 2 })
        let rings = [("one", try ring(1)), ("two", try ring(2))]
        socket.onLeave = { [unowned self] _, _ in for (rendition, ring) in rings { socket.offer(rendition, ring) } }
        #expect(socket.expel { _, _ in false }.isEmpty)
        for client in both {
            var packets: [Packet] = []
            while let packet = try client.receive(maximumBytes: 1024), !packet.isEnd { packets.append(packet) }
            #expect(packets.count == 1 && packets.allSatisfy { $0.descriptor == nil })
        }
    }
}
