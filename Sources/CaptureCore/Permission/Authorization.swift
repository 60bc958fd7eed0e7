/// What a user may do with one kind of media (AVFoundation's `AVAuthorizationStatus`).
public enum AuthorizationStatus: String, Hashable, Sendable, CaseIterable {
    /// Nobody has decided yet: the user may ask.
    case notDetermined
    /// The configuration says no, and only the configuration can be changed about it.
    case restricted
    /// An administrator said no.
    case denied
    case authorized
}

/// What permission is given for: cameras, microphones, and the library of photos and movies, to put something into it
/// or to look into it.
public enum AuthorizationMedia: String, Hashable, Sendable, CaseIterable {
    case video, audio, libraryAdd, library

    /// Those that a device may be of, whose pictures or sound are seen or heard.
    public static let ofDevices: [AuthorizationMedia] = [.video, .audio]
}

/// What the configuration makes of a user.
public enum AuthorizationRole: String, Hashable, Sendable, CaseIterable, Comparable {
    /// May do nothing, and can't ask.
    case none
    /// May ask: what an administrator answers holds.
    case ask
    /// May see and hear, and change nothing.
    case view
    /// May see, hear and change.
    case control
    /// May all that, and decide for others.
    case admin

    /// The one with more rights is greater.
    public static func < (left: AuthorizationRole, right: AuthorizationRole) -> Bool { left.rank < right.rank }

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
