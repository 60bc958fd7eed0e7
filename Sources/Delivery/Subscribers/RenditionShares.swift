package import BusProtocol

/// A connection that wants renditions, and its user.
package struct RenditionClient: Hashable {
    package enum Connection: Hashable {
        /// A subscriber's connection to the media socket, by its descriptor.
        case subscriber(Int32)
        /// A reader's connection to the socket for rings, by its descriptor.
        case reader(Int32)
        /// The same of a recorder, for the owner of its movie.
        case recorder(Int32)
    }

    package let connection: Connection
    package let uid: UInt32

    package init(_ connection: Connection, uid: UInt32) {
        self.connection = connection
        self.uid = uid
    }

    package var isRecorder: Bool { if case .recorder = connection { true } else { false } }
}

/// A form of frames or sound that a device makes for its clients.
package protocol SharedForm: Hashable {
    /// It is made for everybody at any time, and is in nobody's share.
    var isAlwaysMade: Bool { get }
}

/// How the renditions that a device makes at a time are divided, so that no client can take what others need.
package struct RenditionShares {
    /// What a user is, as far as shares are concerned.
    package enum Standing {
        case user
        /// The user that the bus runs as: its matchers work for other users.
        case bus
        /// The gateway's user: one connection serves many users.
        case gateway
        case administrator
    }

    /// A limit that a further rendition would exceed.
    package enum Limit { case connection, user, others, device }

    /// Renditions that are made at a time, in addition to those that are always made.
    package let total: Int
    /// What a user is.
    package var standing: (_ uid: UInt32) -> Standing = { _ in .user }

    package init(total: Int) { self.total = max(1, total) }

    private var half: Int { (total + 1) / 2 }
    /// What all users have together who are no administrators.
    private var others: Int { total - total / 4 }

    /// How many renditions the clients may have that a limit is about.
    package func maximum(_ limit: Limit, of standing: Standing) -> Int {
        switch (limit, standing) {
        case (.connection, .gateway): others
        case (.connection, _): half
        case (.user, .user): half
        case (.user, .bus), (.user, .gateway): others
        case (.user, .administrator): total
        case (.others, _): others
        case (.device, _): total
        }
    }

    /// The limit that keeps the client from a further rendition; nil: none does.
    ///
    /// - Parameter taken: for each rendition that is in somebody's share, whose.
    package func obstacle(to client: RenditionClient, taken: [RenditionClient]) -> Limit? {
        let standing = standing(client.uid)
        let counts: [(Limit, Int)] = [
            (.connection, taken.count { $0.connection == client.connection }),
            (.user, taken.count { $0.uid == client.uid }),
            (.device, taken.count),
            (.others, taken.count { self.standing($0.uid) != .administrator }),
        ]
        for (limit, count) in counts where count >= maximum(limit, of: standing) {
            if standing == .administrator, limit == .user || limit == .others { continue }
            return limit
        }
        return nil
    }
}

extension Rendition: SharedForm {}
extension SoundRendition: SharedForm {}
