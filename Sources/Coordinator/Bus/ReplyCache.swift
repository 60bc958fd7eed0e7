import BusProtocol
import BusServer
import CaptureCore

/// Replies with further frames, for requests that are sent again with the same key. Kept for a limited time and up to a
/// number of bytes; the oldest go first.
final class ReplyCache {
    private struct Kept {
        let answer: CallReply
        /// The client that got it.
        let peer: PeerAddress
        let bytes: Int
        let timer: Loop.Token
    }

    private let loop: Loop
    private var answers: [RequestKey: Kept] = [:]
    /// The oldest first.
    private var order: [RequestKey] = []
    private(set) var bytes = 0

    private static let maximumBytes = 64 << 20
    /// Milliseconds.
    private static let lifetime: Int64 = 60_000

    init(_ loop: Loop) { self.loop = loop }

    /// - Returns: nil: it had no further frames, or they are not kept any more.
    subscript(key: RequestKey) -> CallReply? { answers[key]?.answer.shared }

    /// Keeps it, unless it has no further frames or too many bytes of them.
    ///
    /// - Parameter peer: the client that got it.
    func keep(_ answer: CallReply, for key: RequestKey, of peer: PeerAddress) {
        forget(key)
        let size = answer.bytes
        guard !answer.attachments.isEmpty, size <= Self.maximumBytes else { return }
        while bytes + size > Self.maximumBytes, let oldest = order.first { forget(oldest) }
        let timer = loop.schedule(afterMilliseconds: Self.lifetime) { [weak self] in self?.forget(key) }
        answers[key] = Kept(answer: answer.shared, peer: peer, bytes: size, timer: timer)
        order.append(key)
        bytes += size
    }

    /// Forgets replies to users without permission.
    func forget(where isUnauthorized: (PeerAddress) -> Bool) {
        for (key, kept) in answers where isUnauthorized(kept.peer) { forget(key) }
    }

    func forget(_ key: RequestKey) {
        guard let kept = answers.removeValue(forKey: key) else { return }
        loop.cancel(kept.timer)
        order.removeAll { $0 == key }
        bytes -= kept.bytes
    }
}
