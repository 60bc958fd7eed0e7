import BusProtocol
import JSON
import ZeroMQ

/// The reply to a request.
struct CallReply {
    var result: Result<JSONValue, BusError>
    /// Further frames of the reply, in their order; sending takes their bytes away.
    var attachments: [Message] = []
    /// The result for the same request when it is sent again and the further frames are not kept any more; nil: the
    /// same result.
    var later: JSONValue?

    static func success(_ value: JSONValue) -> CallReply { CallReply(result: .success(value)) }
    static func failure(_ error: BusError) -> CallReply { CallReply(result: .failure(error)) }

    /// Bytes of the further frames.
    var bytes: Int { attachments.reduce(0) { $0 + $1.count } }

    /// The same reply for another request: the bytes are counted, not copied.
    var shared: CallReply {
        guard !attachments.isEmpty else { return self }
        var answer = self
        do throws(ZeroMQError) {
            answer.attachments = []
            for frame in attachments {
                let copy = Message()
                try copy.share(frame)
                answer.attachments.append(copy)
            }
            return answer
        } catch {
            return .failure(BusError(.internalError, "There is no memory for the answer."))
        }
    }
}

/// Takes the reply to a request, once.
typealias ReplyTaker = (CallReply) -> Void
