public import BusProtocol
public import JSON
import ZeroMQ

/// A picture, or a chunk of sound, as it came from a device's media socket.
public struct Frame: Sendable {
    public var header: FrameHeader
    /// The header as it was sent.
    public var json: JSONValue
    /// The pixels, where the header's planes say: bytes of the message, or shared memory (``Payload/isShared``).
    public var payload: Payload
    /// Frames of this topic that were published between the one before and this one, and did not come or were left out
    /// here for being late.
    public var lost: UInt64
}

/// A message of a media topic, not looked into yet.
struct RawFrame: Sendable {
    let header: Payload
    /// nil: in place of a frame, why there is none.
    let payload: Payload?

    init?(_ message: [Message]) {
        guard message.count == 2 || message.count == 3 else { return nil }
        header = Payload(message[1])
        payload = message.count == 3 ? Payload(message[2]) : nil
    }

    /// It builds on others, or others on it: told without reading the whole header.
    var isChained: Bool {
        header.withUnsafeBytes { bytes in
            Self.keyframeMember.withUTF8Buffer { member in
                (0...max(0, bytes.count - member.count)).contains { start in
                    bytes[start...].starts(with: member)
                }
            }
        }
    }

    // As names of members only: a quotation mark in a text has a backslash in front of it.
    private static let keyframeMember: StaticString = "\"keyframe\":"

    /// Reads the header, and finds the pixels.
    ///
    /// - Parameter ring: where they are if they did not come along.
    /// - Returns: nil when they are not there any more, or not yet.
    /// - Throws: what stands in it in place of a picture.
    func frame(_ ring: RingLink? = nil) throws(ClientError) -> Frame? {
        let json: JSONValue
        do throws(JSONError) {
            json = try header.withUnsafeBytes { bytes throws(JSONError) in try JSONValue(parsing: bytes) }
        } catch {
            throw .unreadable("The header of a frame is not valid JSON: \(error).")
        }
        let header: FrameHeader
        do throws(BusError) {
            header = try FrameHeader(json)
        } catch {
            throw .refused(error)
        }
        var payload = payload
        if let place = header.buffer, payload == nil {
            guard let ring else { return nil }
            switch ring.find(place) {
            case .picture(let picture): payload = Payload(picture, ring.late)
            case .gone: return nil
            case .nonsense:
                throw .unreadable("A message of \(header.device) names an invalid place in shared memory.")
            }
        }
        guard let payload, header.planesFit(in: payload.count) else {
            throw .unreadable("A frame of \(header.device) is shorter than its header says.")
        }
        return Frame(header: header, json: json, payload: payload, lost: 0)
    }
}
