public import BusProtocol
public import JSON
import ZeroMQ

/// Some milliseconds of sound from a microphone's media socket.
public struct SoundChunk: Sendable {
    public var header: SoundHeader
    /// The header as it was sent.
    public var json: JSONValue
    /// The samples, interleaved.
    public var payload: Payload
    /// Frames of sound that are missing before it, whether the device lost them or this subscriber did.
    public var lost: UInt64
}

/// A message of an `audio/` topic, not looked into yet.
struct RawSound: Sendable {
    private let header: Payload
    private let payload: Payload?

    init?(_ message: [Message]) {
        guard message.count == 2 || message.count == 3 else { return nil }
        header = Payload(message[1])
        payload = message.count == 3 ? Payload(message[2]) : nil
    }

    /// Reads the header.
    ///
    /// - Throws: what stands in it in place of sound.
    func chunk() throws(ClientError) -> SoundChunk {
        let json: JSONValue
        do throws(JSONError) {
            json = try header.withUnsafeBytes { bytes throws(JSONError) in try JSONValue(parsing: bytes) }
        } catch {
            throw .unreadable("The header of a sound message is not valid JSON: \(error).")
        }
        let header: SoundHeader
        do throws(BusError) {
            header = try SoundHeader(json)
        } catch {
            throw .refused(error)
        }
        guard let payload, header.framesFit(in: payload.count) else {
            throw .unreadable("A sound message of \(header.device) has another length than its header says.")
        }
        return SoundChunk(header: header, json: json, payload: payload, lost: 0)
    }
}
