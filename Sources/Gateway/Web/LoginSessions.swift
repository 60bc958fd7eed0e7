import LinuxIO
import Synchronization

/// The browsers that have logged in. A browser's cookie names its session and is not the token, so it ends when the
/// user logs out, after ``seconds``, with the token, and with the gateway.
final class LoginSessions: Sendable {
    private struct Session {
        /// Digest of the token.
        let token: String
        /// Monotonic nanoseconds.
        let end: Int64
    }

    private let sessions = Mutex<[String: Session]>([:])

    /// How long a session lasts.
    static let seconds = 30 * 24 * 3600
    /// Of one token; the oldest one ends for another.
    private static let maximum = 16

    /// Begins a session.
    ///
    /// - Parameters:
    ///   - token: the digest of its user's token.
    ///   - now: monotonic nanoseconds.
    /// - Returns: its name, which nobody can guess.
    func begin(for token: String, at now: Int64 = MonotonicClock.now()) -> String {
        let id = hexadecimal(randomBytes(16))
        sessions.withLock { sessions in
            sessions = sessions.filter { $0.value.end > now }
            let others = sessions.filter { $0.value.token == token }
            if others.count >= Self.maximum, let oldest = others.min(by: { $0.value.end < $1.value.end }) {
                sessions[oldest.key] = nil
            }
            sessions[id] = Session(token: token, end: now + Int64(Self.seconds) * 1_000_000_000)
        }
        return id
    }

    /// The digest of the token that began a session; nil: there is no such session.
    func token(of id: String, at now: Int64 = MonotonicClock.now()) -> String? {
        sessions.withLock { sessions in
            guard let session = sessions[id], session.end > now else { return nil }
            return session.token
        }
    }

    func end(_ id: String) { sessions.withLock { $0[id] = nil } }

    /// Ends the sessions of all other tokens.
    ///
    /// - Parameter isValid: by the digest of a token.
    func keep(where isValid: (_ token: String) -> Bool) {
        sessions.withLock { $0 = $0.filter { isValid($0.value.token) } }
    }
}
