import BusProtocol
import JSON
import ZeroMQ

/// What is answered to a request.
struct CallReply {
    var result: Result<JSONValue, BusError>
    /// Further frames of the reply, in their order; sending takes their bytes away.
    var attachments: [Message] = []
    /// What the same request gets that is asked again when the further frames are not kept any more; nil: the result.
    var later: JSONValue?

    static func success(_ value: JSONValue) -> CallReply { CallReply(result: .success(value)) }
    static func failure(_ error: BusError) -> CallReply { CallReply(result: .failure(error)) }

    /// Bytes of the further frames.
    var bytes: Int { attachments.reduce(0) { $0 + $1.count } }

    /// The same answer for another reply: the bytes are counted, not copied.
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

/// Takes the answer to a request, once.
typealias ReplyTaker = (CallReply) -> Void
