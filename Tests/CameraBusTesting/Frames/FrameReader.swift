public import BusProtocol
import CaptureCore
public import JSON
public import ZeroMQ

/// A subscriber of one rendition that keeps every frame, so that a hole is a loss.
public struct FrameReader {
    public struct Frame {
        public let header: JSONValue
        public let payload: Message

        public var bytes: MessageBytes { payload.bytes }
        public var stream: String { header["stream"]?.string ?? "" }
        public var sequence: Int64 { header["sequence"]?.integer ?? -1 }
        public var captureSequence: UInt64 {
            header["captureSequence"]?.integer.flatMap { UInt64(exactly: $0) } ?? .max
        }

        /// What a virtual camera has drawn into the picture; nil when it can't be read.
        public var pictureCounter: PictureCounter? {
            guard let format = header["format"]?.string, let width = header["width"]?.integer,
                let height = header["height"]?.integer
            else { return nil }
            if format == "MJPG" || format == "JPEG" || format == "jpeg" {
                return payload.withUnsafeBytes { PictureCounterReader.read(jpeg: $0) }
            }
            guard let pixelFormat = PixelFormat(format) else { return nil }
            let planes = (header["planes"]?.array ?? []).map { plane in
                PlaneLayout(
                    offset: Int(plane["offset"]?.integer ?? 0), stride: Int(plane["stride"]?.integer ?? 0),
                    bytes: Int(plane["bytes"]?.integer ?? 0))
            }
            let layout = FrameLayout(
                pixelFormat: pixelFormat, dimensions: Dimensions(width: Int(width), height: Int(height)), planes: planes
            )
            return payload.withUnsafeBytes { PictureCounterReader.read($0, layout) }
        }
    }

    private let client: RawClient

    public init(_ bus: BusHarness, _ device: String, _ rendition: String) throws {
        client = try RawClient(.subscribe, path: bus.directory.mediaSocket(device))
        try client.socket.subscribe("frame/\(device)/\(rendition)/")
    }

    /// The next frame; error headers on the way are passed over, since a device that just restarts may send one.
    public func next() throws -> Frame {
        while true {
            let frame = try receive()
            if frame.header["error"] == nil { return frame }
        }
    }

    /// The next error header's error.
    public func error() throws -> BusError {
        while true {
            if let error = try receive().header["error"] { return BusError(header: error) }
        }
    }

    private func receive() throws -> Frame {
        let frames = try client.receive(within: 20)
        guard frames.count >= 2 else { throw RawClient.TimedOut() }
        return Frame(header: try JSONValue(parsing: frames[1].bytes), payload: frames[frames.count - 1])
    }
}
