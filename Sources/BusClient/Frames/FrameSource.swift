public import BusProtocol
import Glibc
import JSON
import LinuxIO

/// A device for this program's own frames (`source.create`), for filters: others see it as a camera. It ends when it is
/// deleted, or with the process.
///
/// Its calls block for at most two seconds. Call it from a thread of your own, one call at a time.
public final class FrameSource {
    /// The device's id when it was made; it may have been renamed since.
    public let device: String
    /// The same whenever a source of that name is made.
    public let uniqueID: String
    /// That each frame has; a compressed one, at most.
    public let frameBytes: Int
    /// Frames that could not be sent, because the device's process was just not there.
    public private(set) var dropped: UInt64 = 0

    private let path: String
    private let isCompressed: Bool
    private var socket: StreamSocket?
    private var nextAttempt: Int64 = 0

    /// Nanoseconds from one attempt to connect to the next.
    private static let retry: Int64 = 500_000_000
    /// Nanoseconds in which a frame must be taken.
    private static let patience: Int64 = 2_000_000_000

    fileprivate init(_ answer: JSONValue, isCompressed: Bool) throws(ClientError) {
        guard let device = answer["device"]?.string, let uniqueID = answer["uniqueID"]?.string,
            let path = answer["path"]?.string, let bytes = answer["bytes"]?.integer, bytes > 0
        else {
            throw .unreadable("The answer of the bus to source.create is invalid: it names no place for the frames.")
        }
        (self.device, self.uniqueID, self.path) = (device, uniqueID, path)
        frameBytes = Int(bytes)
        self.isCompressed = isCompressed
    }

    /// Sends a frame.
    ///
    /// - Parameters:
    ///   - pixels: the planes without padding between lines, or a JPEG picture.
    ///   - time: when it was taken, nanoseconds of CLOCK_MONOTONIC: that of the frame that it was made of; 0: now.
    /// - Returns: false when the device's process is just not there, which is started again by itself: the frame is
    ///   lost.
    /// - Throws: ``ClientError/refused(_:)`` when the frame has the wrong size, or is not taken from this process.
    @discardableResult
    public func send(_ pixels: UnsafeRawBufferPointer, taken time: Int64 = 0) throws(ClientError) -> Bool {
        guard pixels.count <= frameBytes, pixels.count >= (isCompressed ? 1 : frameBytes) else {
            throw .refused(
                .invalidParams(
                    "pixels", "a frame of \(device) must have \(frameBytes) bytes; this one has \(pixels.count)"))
        }
        guard let socket = connection() else {
            dropped += 1
            return false
        }
        let head = Array("CBF1".utf8) + Self.bytes(UInt32(pixels.count)) + Self.bytes(time)
        let deadline = MonotonicClock.now() + Self.patience
        var failure: SystemError?
        head.withUnsafeBytes { head in
            do throws(SystemError) {
                try socket.send(head, by: deadline)
                try socket.send(pixels, by: deadline)
            } catch {
                failure = error
            }
        }
        guard failure != nil else { return true }
        dropped += 1
        self.socket = nil
        let told = socket.received(maximumBytes: 4096).withUnsafeBytes { try? JSONValue(parsing: $0) }
        guard let reason = told?["reason"]?.string.flatMap(BusError.Reason.init) else { return false }
        throw .refused(BusError(reason, told?["message"]?.string ?? "", ["device": .string(device)]))
    }

    private func connection() -> StreamSocket? {
        if let socket { return socket }
        let now = MonotonicClock.now()
        guard now >= nextAttempt else { return nil }
        nextAttempt = now + Self.retry
        socket = try? StreamSocket(connectingTo: path)
        return socket
    }

    private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }
}

extension Client {
    /// Makes a device of this program's own frames; where it has the same one already, that one is given.
    ///
    /// Where the bus ends before it has answered, the next one is asked for the same one.
    ///
    /// - Parameters:
    ///   - name: what people call it; a source of the same name has the same id and settings always. What is or was a
    ///     camera's name is refused.
    ///   - pixelFormat: `BGR3`, `RGB3`, `GREY`, `YUYV`, `UYVY`, `NV12`, `YU12`, `MJPG`, or a format of single samples
    ///     of 8 to 16 bits: grey (`Y10`, `Y12`, `Y14`, `Y16`), depth (`Z16`) or Bayer (`RGGB`, `RG10`, …). Samples of
    ///     more than 8 bits have two bytes, the lower one first.
    ///   - frameRate: the rate that it states; nil: none.
    ///   - extensions: what it states about its pictures: colours, shape of the pixels, clean part, metres of a step of
    ///     depth; nil: what a webcam has. The rate and the bits are not taken from it.
    ///   - orientation: degrees clockwise that its pictures have to be turned to be upright: 0, 90, 180 or 270.
    ///   - isMirrored: left and right have to be exchanged after that.
    public func createSource(
        _ name: String, pixelFormat: String, width: Int, height: Int, frameRate: FrameRate? = nil,
        extensions: FormatExtensions? = nil, orientation: Int = 0, isMirrored: Bool = false,
        timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> FrameSource {
        var format = extensions?.members ?? [:]
        for member in ["frameDuration", "bitsPerComponent", "alignment"] { format[member] = nil }
        format["pixelFormat"] = .string(pixelFormat)
        (format["width"], format["height"]) = (JSONValue(width), JSONValue(height))
        if orientation != 0 { format["orientation"] = JSONValue(orientation) }
        if isMirrored { format["mirrored"] = true }
        var params: [String: JSONValue] = ["name": .string(name), "format": .object(format)]
        if let frameRate { params["frameRate"] = frameRate.json }
        let answer = try await patientCall("source.create", .object(params), timeout: timeout) { made in
            made["device"].map { [("source.delete", ["device": $0])] } ?? []
        }
        return try FrameSource(answer, isCompressed: pixelFormat == "MJPG")
    }

    /// Takes a device away, whatever it is called by now.
    public func deleteSource(_ source: FrameSource, timeout: Duration = defaultTimeout) async throws(ClientError) {
        let devices = try await call("device.list", timeout: timeout)["devices"]?.array ?? []
        let own = devices.first { $0["uniqueID"]?.string == source.uniqueID }
        try await deleteSource(own?["id"]?.string ?? source.device, timeout: timeout)
    }

    /// Takes a device away that `createSource` made.
    public func deleteSource(_ device: String, timeout: Duration = defaultTimeout) async throws(ClientError) {
        _ = try await call("source.delete", ["device": .string(device)], timeout: timeout)
    }
}
