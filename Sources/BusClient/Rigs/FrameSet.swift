public import BusProtocol
public import JSON
import ZeroMQ

/// Frames of a rig's cameras that were taken at the same time; or one that arrived after its set
/// (``FrameSetHeader/isLate``).
public struct FrameSet: Sendable {
    public var header: FrameSetHeader
    /// The header as it was sent.
    public var json: JSONValue
    /// The pictures that are there, in the order of the rig's devices.
    public var frames: [Frame]
    /// Messages of this topic that were published between the one before and this one, and did not come or were left
    /// out here for being late.
    public var lost: UInt64
}

/// A message of a `set/` topic, not looked into yet.
struct RawSet: Sendable {
    private let header: Payload
    private let payloads: [Payload]

    init?(_ message: [Message]) {
        guard message.count >= 2 else { return nil }
        header = Payload(message[1])
        payloads = message.dropFirst(2).map { Payload($0) }
    }

    /// Reads the header, and finds each picture.
    ///
    /// - Throws: what stands in it in place of a set.
    func set() throws(ClientError) -> FrameSet {
        let json: JSONValue
        do throws(JSONError) {
            json = try header.withUnsafeBytes { bytes throws(JSONError) in try JSONValue(parsing: bytes) }
        } catch {
            throw .unreadable("The header of a set is not valid JSON: \(error).")
        }
        let header: FrameSetHeader
        do throws(BusError) {
            header = try FrameSetHeader(json)
        } catch {
            throw .refused(error)
        }
        var frames: [Frame] = []
        for (index, part) in header.parts.enumerated() {
            guard let frame = part.frame, let place = part.payload else { continue }
            guard payloads.indices.contains(place), frame.planesFit(in: payloads[place].count) else {
                throw .unreadable("A set of \(header.set) is shorter than its header says.")
            }
            let own = json["frames"]?.array?[index] ?? .null
            frames.append(Frame(header: frame, json: own, payload: payloads[place], lost: 0))
        }
        return FrameSet(header: header, json: json, frames: frames, lost: 0)
    }
}
