public import BusProtocol
import JSON

/// How long a camera's pictures are held, so that a photo can be of a moment that is over.
public enum PhotoPreRoll {
    /// Milliseconds, at most.
    public static let longest = 10_000
    /// Milliseconds that a photo output may ask for; 0: nothing is held.
    public static let lengths: ClosedRange<Int64> = 0...Int64(longest)
    /// Bytes of a camera's pictures that are held, at most, whatever was asked for.
    public static let capacity = 64 << 20
}

extension BusError {
    /// A photo of a moment that is not held, or not any more.
    ///
    /// - Parameters:
    ///   - ago: nanoseconds before the request came.
    ///   - preRoll: milliseconds for which the camera's pictures are held; 0: they aren't.
    ///   - oldest: how old the oldest one is, nanoseconds; nil: there is none.
    public static func momentNotHeld(device: String, ago: Int64, preRoll: Int, oldest: Int64?) -> BusError {
        let message =
            if preRoll == 0 {
                "No running session keeps pictures of \(device). Set preRoll (milliseconds) of a photo output with "
                    + "session.configure."
            } else if oldest == nil {
                "No picture of \(device) has been kept yet. It has just started to stream, or pictures of its format "
                    + "can't be kept."
            } else {
                "That moment of \(device) is not held any more, only the last \(seconds(oldest)) are; ask for a later "
                    + "one"
                    + (preRoll < PhotoPreRoll.longest ? ", or give the photo output a longer preRoll." : ".")
            }
        return BusError(
            .momentNotHeld, message,
            [
                "device": .string(device), "ago": .number(Double(ago) / 1e6), "preRoll": JSONValue(preRoll),
                "oldest": oldest.map { .number(Double($0) / 1e6) } ?? .null,
            ])
    }

    // A tenth less than it is rather than more.
    private static func seconds(_ nanoseconds: Int64?) -> String {
        let tenths = max(0, nanoseconds ?? 0) / 100_000_000
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
