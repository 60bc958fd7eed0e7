/// Where a bus has its sockets. Paths only: nothing is looked up or made.
public struct RuntimeDirectory: Hashable, Sendable {
    /// Why a path can't be one.
    public struct PathError: Error, Hashable, Sendable, CustomStringConvertible {
        /// One sentence that tells a person what to do.
        public var description: String
    }

    /// Absolute, without a final `/`.
    public let path: String

    /// - Throws: for a relative path, one with a NUL, and one that leaves too few bytes for the longest socket path in
    ///   it.
    public init(_ path: String) throws(PathError) {
        guard path.hasPrefix("/") else {
            throw PathError(description: "The runtime directory must be an absolute path, not '\(path)'.")
        }
        guard !path.utf8.contains(0) else { throw PathError(description: "The runtime directory holds a NUL byte.") }
        var path = path
        while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
        self.path = path
        let excess = longestSocket.utf8.count - BusLimits.maxSocketPathBytes
        guard excess <= 0 else {
            throw PathError(
                description:
                    "The runtime directory '\(path)' is \(excess) bytes too long: a Unix socket's path may have "
                    + "\(BusLimits.maxSocketPathBytes) bytes."
            )
        }
    }

    private init(trusted path: String) { self.path = path }

    /// The directory that a server takes: the flag, else `$CAMERABUS_RUNTIME_DIR`, else `/run/camerabus` for root, else
    /// `$XDG_RUNTIME_DIR/camerabus`, else `/tmp/camerabus-<uid>`. Empty is as good as absent.
    public static func server(
        flag: String?, environment: [String: String], uid: UInt32
    ) throws(PathError) -> RuntimeDirectory {
        if let named = named(flag, environment) { return try RuntimeDirectory(named) }
        if uid == 0 { return system }
        if let path = session(environment) { return try RuntimeDirectory(path) }
        return temporary(uid)
    }

    /// The directories that a client looks into, in this order, for a live socket: only the one that the flag, else the
    /// environment names; else `$XDG_RUNTIME_DIR/camerabus`, `/run/camerabus`, `/tmp/camerabus-<uid>`.
    public static func clientCandidates(
        flag: String?, environment: [String: String], uid: UInt32
    ) throws(PathError) -> [RuntimeDirectory] {
        if let named = named(flag, environment) { return [try RuntimeDirectory(named)] }
        // A session directory that can't hold a bus is passed over: nobody asked for it.
        let session = session(environment).flatMap { try? RuntimeDirectory($0) }
        return (session.map { [$0] } ?? []) + [system, temporary(uid)]
    }

    private static let system = RuntimeDirectory(trusted: "/run/camerabus")

    private static func temporary(_ uid: UInt32) -> RuntimeDirectory {
        RuntimeDirectory(trusted: "/tmp/camerabus-\(uid)")
    }

    private static func named(_ flag: String?, _ environment: [String: String]) -> String? {
        if let flag, !flag.isEmpty { return flag }
        if let path = environment["CAMERABUS_RUNTIME_DIR"], !path.isEmpty { return path }
        return nil
    }

    // The XDG base directory specification: a relative path is to be ignored.
    private static func session(_ environment: [String: String]) -> String? {
        guard let base = environment["XDG_RUNTIME_DIR"], base.hasPrefix("/") else { return nil }
        return base.hasSuffix("/") ? "\(base)camerabus" : "\(base)/camerabus"
    }
}

extension RuntimeDirectory {
    /// ROUTER: requests.
    public var commandSocket: String { "\(path)/command.sock" }
    /// XPUB: state and events.
    public var eventsSocket: String { "\(path)/events.sock" }
    /// The directory of the devices' media sockets.
    public var media: String { "\(path)/media" }
    /// XPUB: a device's frames, or a rig's sets.
    public func mediaSocket(_ device: String) -> String { "\(media)/\(device)\(Self.mediaSocketEnding)" }
    public static let mediaSocketEnding = ".sock"
    /// SOCK_SEQPACKET: a device's rings in shared memory.
    public func ringSocket(_ device: String) -> String { "\(media)/\(device).ring" }
    /// SOCK_STREAM: where the frames of a client's own device go. The name is not the device's id, which may change.
    public func sourceSocket(_ name: String) -> String { "\(media)/\(name).push" }
    /// What only the coordinator and its workers see; mode 0700.
    public var internalDirectory: String { "\(path)/internal" }
    /// Where workers report to the coordinator.
    public var workersSocket: String { "\(internalDirectory)/workers.sock" }
    /// Held with flock(2) by a device's worker for as long as it lives.
    public func deviceLock(_ device: String) -> String { "\(internalDirectory)/\(device).lock" }
    /// Held with flock(2) by a rig's matcher for as long as it lives.
    public func matcherLock(_ rig: String) -> String { "\(internalDirectory)/\(rig).set.lock" }
    /// Where recorders report to the coordinator.
    public var recordersSocket: String { "\(internalDirectory)/recorders.sock" }
    /// Held with flock(2) by a movie's recorder for as long as it lives.
    public func movieLock(_ movie: String) -> String { "\(internalDirectory)/\(movie)\(Self.movieLockEnding)" }
    public static let movieLockEnding = ".movie.lock"
    /// Has the movies of live photos until they are fetched; mode 0700.
    public var livePhotos: String { "\(internalDirectory)/live" }
    /// A live photo's movie, as long as its recorder keeps it.
    ///
    /// - Parameter digits: the photo's content identifier: 32 hexadecimal digits.
    public func livePhotoFile(_ digits: String) -> String { "\(livePhotos)/\(digits).mov" }
    /// Held with flock(2) by the coordinator for as long as it lives.
    public var coordinatorLock: String { "\(path)/camerabusd.lock" }
    /// What outlives the coordinator: locks, fence counter.
    public var stateFile: String { "\(internalDirectory)/state.json" }

    /// Has ``accessListFile`` and nothing else: who watches that is woken for nothing else.
    public var accessDirectory: String { "\(internalDirectory)/access" }

    /// Who may see sets of frames.
    public var accessListFile: String { "\(accessDirectory)/access-list.json" }

    /// What outlives the coordinator of clients' own devices.
    public var sourcesFile: String { "\(internalDirectory)/sources.json" }

    /// As libzmq wants it.
    public static func endpoint(_ path: String) -> String { "ipc://\(path)" }

    private var longestSocket: String { mediaSocket(String(repeating: "x", count: DeviceID.maxBytes)) }
}
