import BusClient
public import BusProtocol
import CaptureCore
import FrameRing
import JSON
import LinuxIO
public import ZeroMQ

/// A subscriber of `buffer/` that follows the references into shared memory.
public final class ReferenceReader {
    private let device: String
    private let topic: String
    private let messages: Socket
    private let rings: PacketSocket
    private var views: [String: (view: SharedMemoryView, plan: RingPlan)] = [:]

    /// - Parameter context: for many of them together.
    public init(_ bus: BusHarness, _ device: String, rendition: String = "native", _ context: Context) throws {
        self.device = device
        topic = "buffer/\(device)/\(rendition)/"
        rings = try PacketSocket(connectingTo: bus.directory.ringSocket(device))
        let wish: JSONValue = ["rendition": .string(rendition)]
        _ = try rings.send(wish.serialized)
        messages = try Socket(context, .subscribe)
        try messages.set(.receiveHighWaterMark, 4)
        try messages.subscribe(topic)
        try messages.connect("ipc://\(bus.directory.mediaSocket(device))")
    }

    /// A frame that was still there when its picture had been read.
    public struct Frame {
        public var header: FrameHeader
        public var pictureCounter: PictureCounter?
    }

    /// The next frame that is there for long enough.
    public func next(by deadline: Deadline = .usual) throws -> Frame {
        while !deadline.hasPassed {
            guard let parts = try messages.receive() else {
                let set = try PollSet([.socket(messages)])
                try set.wait(timeout: deadline.millisecondsLeft)
                continue
            }
            guard parts.count >= 2 else { continue }
            let json = try JSONValue(parsing: parts[1].bytes)
            // A device that has just been set anew may say so.
            guard json["error"] == nil else { continue }
            let header = try FrameHeader(json)
            guard let place = header.buffer else { throw TestingError("A message on \(topic) names no place.") }
            if let frame = try read(header, place, by: deadline) { return frame }
        }
        throw TestingError("No frame came on \(topic).")
    }

    private func read(_ header: FrameHeader, _ place: FrameHeader.Buffer, by deadline: Deadline) throws -> Frame? {
        while views[place.ring] == nil {
            guard try takeRing(by: deadline) else { return nil }
        }
        guard let (view, plan) = views[place.ring], place.offset == plan.pixels(place.slot),
            let base = view.bytes.baseAddress
        else { throw TestingError("A message on \(topic) names a place that is none in its ring.") }
        let layout = FrameLayout(
            pixelFormat: PixelFormat(header.format) ?? .jpeg,
            dimensions: Dimensions(width: header.width, height: header.height),
            planes: header.planes.map { PlaneLayout(offset: $0.offset, stride: $0.stride, bytes: $0.bytes) })
        // A copy: pixels that change meanwhile would be no JPEG.
        let picture = Array(view.bytes[place.offset..<place.offset + place.bytes])
        SharedWord.readsAreDone()
        guard SharedWord.load64(base + plan.tableOffset + place.slot * plan.recordBytes) == place.stamp else {
            return nil
        }
        return Frame(header: header, pictureCounter: PictureCounterReader.read(picture, layout))
    }

    private func takeRing(by deadline: Deadline) throws -> Bool {
        guard rings.waitUntilReadable(until: deadline.time) else { return false }
        guard let packet = try rings.receive(maximumBytes: 65536) else { return true }
        if packet.isEnd { throw TestingError("The worker of \(device) has ended the connection.") }
        guard let descriptor = packet.descriptor else { return true }
        let view = try SharedMemoryView(descriptor)
        let plan = try RingPlan(head: Array(view.bytes.prefix(RingLayout.headBytes)), memoryBytes: view.bytes.count)
        views[plan.description.ring] = (view, plan)
        return true
    }
}
