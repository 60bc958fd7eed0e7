public import BusProtocol
public import JSON

/// Whether what a camera sees wants a flash, or a picture that is steadied (`isFlashScene`,
/// `isStillImageStabilizationScene`).
///
/// It gets the brightness of the picture again and again. A verdict changes only when the scene has clearly changed for
/// a while, so that it does not flicker.
public struct SceneMonitor: Hashable, Sendable {
    /// What was seen, once.
    public struct Sight: Hashable, Sendable {
        /// Of the whole picture, 0 (black) to 255.
        public var luma: Double
        /// Nanoseconds; nil: the camera doesn't tell.
        public var exposureDuration: Int64?

        public init(luma: Double, exposureDuration: Int64? = nil) {
            self.luma = luma
            self.exposureDuration = exposureDuration
        }
    }

    /// What a photo is to be: AVFoundation's `photoSettingsForSceneMonitoring`.
    public struct Settings: Hashable, Sendable {
        public var flash: PhotoFlashMode
        public var stabilization: Bool

        public init(flash: PhotoFlashMode = .off, stabilization: Bool = false) {
            self.flash = flash
            self.stabilization = stabilization
        }

        /// There is something to look for.
        public var isMonitored: Bool { flash == .auto || stabilization }
    }

    /// A verdict, and how long another one has been due.
    private struct Verdict: Hashable, Sendable {
        var isOn = false
        private var against = 0

        mutating func see(_ sight: Bool?) {
            // What lies between the two bounds speaks for neither.
            guard let sight, sight != isOn else {
                against = 0
                return
            }
            against += 1
            guard against >= SceneMonitor.patience else { return }
            isOn = sight
            against = 0
        }
    }

    public let settings: Settings
    private var flash = Verdict()
    private var stabilization = Verdict()

    /// A scene is dark from the first of them on, and is not above the second.
    private static let (dark, light) = (60.0, 75.0)
    /// The same for hands that tremble, where nobody tells how long the exposure is.
    private static let (dim, bright) = (90.0, 105.0)
    /// Nanoseconds: longer than the first can't be held by hand, shorter than the second can.
    private static let (long, short): (Int64, Int64) = (33_333_333, 25_000_000)
    /// Sights in a row before a verdict turns.
    static let patience = 3

    public init(_ settings: Settings) { self.settings = settings }

    /// False also where it isn't looked for.
    public var isFlashScene: Bool { settings.flash == .on || settings.flash == .auto && flash.isOn }
    public var isStabilizationScene: Bool { settings.stabilization && stabilization.isOn }

    /// - Returns: whether a verdict has turned.
    public mutating func see(_ sight: Sight) -> Bool {
        guard sight.luma.isFinite else { return false }
        let before = (isFlashScene, isStabilizationScene)
        flash.see(Self.side(sight.luma, below: Self.dark, above: Self.light))
        if let duration = sight.exposureDuration {
            stabilization.see(duration >= Self.long ? true : duration <= Self.short ? false : nil)
        } else {
            stabilization.see(Self.side(sight.luma, below: Self.dim, above: Self.bright))
        }
        return before != (isFlashScene, isStabilizationScene)
    }

    // nil: between the two.
    private static func side(_ luma: Double, below: Double, above: Double) -> Bool? {
        luma < below ? true : luma > above ? false : nil
    }
}

extension SceneMonitor.Settings {
    /// {flash, stabilization}
    public var json: JSONValue { ["flash": .string(flash.rawValue), "stabilization": .bool(stabilization)] }

    /// - Throws: `invalidParams` with the member that is wrong.
    public init(json: JSONValue, path: String) throws(BusError) {
        var reader = try MemberReader(json, path: path)
        let flash: PhotoFlashMode = reader.known("flash") == nil ? .off : try reader.word("flash")
        let stabilization = try reader.flag("stabilization") ?? false
        try reader.refuseOthers()
        self.init(flash: flash, stabilization: stabilization)
    }
}
