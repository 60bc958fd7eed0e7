public import BusProtocol

/// What a session's photo output is to do about live photos (`AVCapturePhotoOutput`).
public struct LivePhotoOutput: Hashable, Sendable {
    /// The seconds before a photo are held, so that it can be a live one.
    public private(set) var isEnabled = false
    /// Nothing of now is to be in any movie.
    public private(set) var isSuspended = false
    /// Movies begin when the camera came to rest, and end when it is moved.
    public private(set) var isAutoTrimming = true

    public init(isEnabled: Bool = false, isSuspended: Bool = false, isAutoTrimming: Bool = true) {
        self.isEnabled = isEnabled
        self.isSuspended = isSuspended && isEnabled
        self.isAutoTrimming = isAutoTrimming
    }

    /// What a client asks for; nil: as it is.
    public struct Wish: Hashable, Sendable {
        public var isEnabled: Bool?
        public var isSuspended: Bool?
        public var isAutoTrimming: Bool?

        public init(isEnabled: Bool? = nil, isSuspended: Bool? = nil, isAutoTrimming: Bool? = nil) {
            self.isEnabled = isEnabled
            self.isSuspended = isSuspended
            self.isAutoTrimming = isAutoTrimming
        }
    }

    /// What follows from a change for live photos that are being made.
    public enum Consequence: Hashable, Sendable {
        case nothing
        /// Those end now, or what comes holds nothing from before (``LivePhotoRun/setSuspended(_:at:)``).
        case suspension(Bool)
        /// Those end with what they have, and what has no picture yet is interrupted.
        case reconfiguration
    }

    /// Carries out what was asked.
    ///
    /// - Parameters:
    ///   - obstacle: why there can be no live photos (``CaptureSession/livePhotoObstacle(_:)``); nil: there can.
    ///   - path: where the wish stands.
    /// - Throws: `invalidParams` {path, why}; nothing is changed then.
    public mutating func set(_ wish: Wish, obstacle: String?, path: String) throws(BusError) -> Consequence {
        var changed = self
        changed.isEnabled = wish.isEnabled ?? isEnabled
        changed.isAutoTrimming = wish.isAutoTrimming ?? isAutoTrimming
        changed.isSuspended = wish.isSuspended ?? isSuspended
        if changed.isEnabled, let obstacle {
            throw .invalidParams("\(path).livePhotoCaptureEnabled", "can't be true: \(obstacle)")
        }
        if !changed.isEnabled {
            guard wish.isSuspended != true else {
                throw .invalidParams(
                    "\(path).livePhotoCaptureSuspended", "can't be true while livePhotoCaptureEnabled is false")
            }
            changed.isSuspended = false
        }
        return become(changed)
    }

    /// Something of the session has changed: what can't be any more is off.
    public mutating func settle(obstacle: String?) -> Consequence {
        guard obstacle != nil, isEnabled else { return .nothing }
        var changed = self
        changed.isEnabled = false
        changed.isSuspended = false
        return become(changed)
    }

    private mutating func become(_ changed: LivePhotoOutput) -> Consequence {
        defer { self = changed }
        return changed.consequence(since: self)
    }

    /// What follows from its having been otherwise before.
    public func consequence(since before: LivePhotoOutput) -> Consequence {
        // What is set of an output that makes none is of no consequence before it does.
        if isEnabled != before.isEnabled { return .reconfiguration }
        guard isEnabled else { return .nothing }
        if isAutoTrimming != before.isAutoTrimming { return .reconfiguration }
        return isSuspended == before.isSuspended ? .nothing : .suspension(isSuspended)
    }
}
