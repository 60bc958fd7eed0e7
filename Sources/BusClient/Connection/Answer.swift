public import JSON

/// What the bus answered to a request.
public struct Answer: Sendable {
    /// The `result` member.
    public var result: JSONValue
    /// The binary frames that `result.attachments` announces, in its order.
    public var attachments: [Payload]
    /// Which of this client's connections it came over, counted from 1.
    var connection: Int
}
