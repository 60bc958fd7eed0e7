import Synchronization

/// The connections that tokens have opened. They end when the token is revoked, or
/// when the browser logs out.
final class TokenConnections: Sendable {
    private struct Admitted {
        let visitor: WebAuthorization.Visitor
        let stream: WebStream
    }

    private let admitted = Mutex<[ObjectIdentifier: Admitted]>([:])

    /// A request of that connection has been let in; what it was before counts no more.
    func enter(_ stream: WebStream, as visitor: WebAuthorization.Visitor) {
        let entry = visitor.name == nil ? nil : Admitted(visitor: visitor, stream: stream)
        admitted.withLock { $0[ObjectIdentifier(stream)] = entry }
    }

    /// That connection has ended.
    func leave(_ stream: WebStream) { admitted.withLock { $0[ObjectIdentifier(stream)] = nil } }

    /// Ends all connections of those.
    func shutDown(where isMeant: (WebAuthorization.Visitor) -> Bool) {
        let all = admitted.withLock { Array($0.values) }
        for each in all where isMeant(each.visitor) { each.stream.shutDown() }
    }
}
