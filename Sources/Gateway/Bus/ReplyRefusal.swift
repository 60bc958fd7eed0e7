import BusProtocol
import JSON

/// Why an answer doesn't go to another machine. What was asked may have been carried out by then, and who asked must not think that it wasn't.
enum ReplyRefusal {
    /// It has more bytes than one may have.
    static func tooLong(_ bytes: Int, maximum: Int) -> BusError {
        BusError(
            .limitExceeded,
            "This was carried out, but its answer has \(bytes) bytes, more than goes to other machines; have photos in the library, and ask for shorter parts of files.",
            ["limit": "remoteReply", "maximum": JSONValue(maximum)])
    }

    /// Nothing was carried out: there would be no room for what the answer brings.
    static let noRoomYet = BusError(
        .limitExceeded,
        "Answers to this key that are still on their way leave no room for what this one would bring; read them, and ask again.",
        roomLimit)

    /// It was, and then others were on their way.
    static let noRoomLeft = BusError(
        .limitExceeded,
        "This was carried out, but answers to this key that are still on their way leave no room for its own; read them, and ask again with the same request key. Without one, look for what was made in the library.",
        roomLimit)

    private static let roomLimit: [String: JSONValue] = [
        "limit": "remoteReplies", "maximum": JSONValue(QueuedByteCounter.maximum),
    ]
}
