import BusProtocol
import JSON
import ZeroMQ

/// Counts the bytes of replies until clients have received them: a client that does not read its replies must not fill
/// the memory, nor take the room of others.
final class AttachmentBudget {
    /// What the bytes are, and how many there may be.
    struct Kind {
        /// As `limitExceeded` names it.
        var limit: String
        /// Of all users, and of one.
        var maximum: Int
        var maximumOfUser: Int
        /// What they are called.
        var name: String
        /// What else may be done than to read replies, or to ask later; empty: nothing.
        var way: String

        /// Of one user more than one reply may have.
        static let photos = Kind(
            limit: "photoReplies", maximum: 512 << 20, maximumOfUser: 320 << 20, name: "the photos",
            way: ", or have photos delivered to the library")
        static let libraryParts = Kind(
            limit: "libraryReplies", maximum: 256 << 20, maximumOfUser: 128 << 20, name: "the part of a file", way: "")
    }

    private let kind: Kind
    private let all = ByteCount()
    private var users: [UInt32: ByteCount] = [:]

    init(_ kind: Kind) { self.kind = kind }

    /// The same bytes, not copied, and counted from now on.
    ///
    /// - Throws: `limitExceeded` {limit, maximum}: there is no room for them now.
    func count(_ frame: Message, for uid: UInt32) throws(BusError) -> Message {
        users = users.filter { $0.value.bytes > 0 }
        let user = users[uid] ?? ByteCount()
        guard user.bytes + frame.count <= kind.maximumOfUser else {
            throw refusal(
                "Replies to you that are still on their way leave no room for \(kind.name); read them\(kind.way).",
                kind.maximumOfUser)
        }
        guard all.bytes + frame.count <= kind.maximum else {
            throw refusal(
                "Replies to other users that fill the queue, so there is no room for \(kind.name); try again "
                    + "later\(kind.way).",
                kind.maximum)
        }
        users[uid] = user
        let counted = Message()
        do {
            try counted.share(frame, countedIn: [all, user])
        } catch {
            throw BusError(.internalError, "There is no memory for the reply: \(error)")
        }
        return counted
    }

    private func refusal(_ text: String, _ maximum: Int) -> BusError {
        BusError(.limitExceeded, text, ["limit": .string(kind.limit), "maximum": JSONValue(maximum)])
    }
}
