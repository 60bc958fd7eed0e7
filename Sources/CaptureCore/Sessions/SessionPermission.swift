extension CaptureSession {
    /// What its inputs are of.
    public var media: Set<AuthorizationMedia> { Set(inputs.map(\.medium)) }

    /// What it can't do without, of what its inputs are of: all but what goes only to movies that have black, or
    /// silence, in its place.
    public var neededMedia: Set<AuthorizationMedia> { Set(inputs.filter { !isReplaceable($0.device) }.map(\.medium)) }

    /// Whether that input may be left out where the session's user may not have it.
    public func isReplaceable(_ device: String) -> Bool {
        let joined = connections.filter { $0.input == device && $0.isEnabled }
        return !joined.isEmpty
            && joined.allSatisfy { connection in
                outputs.contains { $0.id == connection.output && $0.isBlankWhenDenied }
            }
    }
}

extension SessionInput {
    public var medium: AuthorizationMedia { mediaType == .audio ? .audio : .video }
}
