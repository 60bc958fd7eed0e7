import BusProtocol
import JSON

/// Errors that replace a reply which does not fit. The request may have been carried out, so they say so.
enum ReplyRefusal {
    /// It has more bytes than one may have.
    static func tooLong(_ bytes: Int, maximum: Int) -> BusError {
        BusError(
            .limitExceeded,
            "The request was carried out, but its answer of \(bytes) bytes is too long for other machines. "
                + "Store photos in the library, and read files in shorter parts.",
            ["limit": "remoteReply", "maximum": JSONValue(maximum)])
    }

    /// Nothing was carried out: there would be no room for what the answer brings.
    static let noRoomYet = BusError(
        .limitExceeded,
        "Too many answers for this key are still waiting to be read. Read them, then repeat the request.",
        roomLimit)

    /// It was, and then others were on their way.
    static let noRoomLeft = BusError(
        .limitExceeded,
        "The request was carried out, but too many answers for this key are still waiting to be read. Read them, then "
            + "repeat "
            + "the request with the same request key. Without a request key, look for the result in the library.",
        roomLimit)

    private static let roomLimit: [String: JSONValue] = [
        "limit": "remoteReplies", "maximum": JSONValue(QueuedByteCounter.maximum),
    ]
}
