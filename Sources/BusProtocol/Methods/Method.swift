public import JSON

/// A method of the bus: what it takes, what it answers, who may call it.
public struct Method: Hashable, Sendable {
    public var name: String
    /// One sentence.
    public var summary: String
    /// Of `params`, which is always an object.
    public var params: Schema
    public var result: Schema
    /// Only for administrators; others get `unauthorized`.
    public var admin: Bool
    /// What a caller needs beside the right to connect.
    public var needs: Needs
    /// The feature of `bus.hello` that stands for it; nil: every bus has it.
    public var feature: Feature?
    /// The reasons that are its own. `invalidParams`, `unauthorized`, `limitExceeded`, `internalError` and
    /// `shuttingDown` can come from all.
    public var errors: [BusError.Reason]
    /// It changes nothing, and answers at once what is so. Nothing of its answers is kept: asked again under the same
    /// key, it is carried out anew.
    public var isRepeatable: Bool
    /// The protocol version that brought it.
    public var since = 1

    /// What a method asks of its caller before it looks at anything.
    public enum Needs: String, Hashable, Sendable, CaseIterable {
        /// It changes nothing, or sees itself to what is allowed.
        case nothing
        /// Permission for the kinds of media of the devices that it names; where it names none, for any.
        case permission
    }

    public init(
        _ name: String, _ summary: String, params: Schema = .object([]), result: Schema = .object([], additional: true),
        admin: Bool = false, needs: Needs = .permission, feature: Feature? = nil, errors: [BusError.Reason] = [],
        isRepeatable: Bool = false
    ) {
        self.name = name
        self.summary = summary
        self.params = params
        self.result = result
        self.admin = admin
        self.needs = needs
        self.feature = feature
        self.errors = errors
        self.isRepeatable = isRepeatable
    }

    /// The entry in `bus.methods`.
    public var json: JSONValue {
        [
            "name": .string(name), "summary": .string(summary), "params": params.json, "result": result.json,
            "admin": .bool(admin), "needs": .string(needs.rawValue),
            "feature": feature.map { .string($0.rawValue) } ?? .null,
            "errors": JSONValue(errors.map(\.rawValue)), "since": JSONValue(since),
        ]
    }
}

/// What a bus can do, told by `bus.hello` as `features`: how a new client knows what an old server takes.
public enum Feature: String, Hashable, Sendable, CaseIterable {
    /// Requests with `key`, and `bus.cancel`.
    case keys
    /// `device.lock` and what belongs to it.
    case locks
    /// `device.configure` and `device.set`.
    case configure
    /// `frame/` topics with every rendition of ``Rendition/Encoding``.
    case renditions
    /// `device.who`.
    case who
    /// `device.rename`.
    case names
    /// `fault.inject`, `fault.script` and what belongs to it.
    case faults
    /// Controls of the capture model (`focusMode`, `videoZoomFactor`, …), `supports`, and the methods that work with
    /// them.
    case cameraControls
    /// `session.create` and what belongs to it.
    case sessions
    /// Frames in shared memory: `media/<device>.ring`, and `buffer/` topics.
    case rings
    /// `source.create`: clients' own frames as devices.
    case sources
    /// `profile.*`.
    case profiles
    /// `rig.*`, rigs wherever devices are taken, and `set/` topics.
    case rigs
    /// `authorization.*`: permission by user.
    case permission
    /// Microphones: `audio/` and `level/` topics.
    case sound
    /// `movie.*`: cameras and microphones recorded into files.
    case movies
    /// `library.*`: what was recorded.
    case library
    /// `library.read`: the files of what was recorded.
    case libraryRead
    /// What each user may have in the library: `libraryQuotaReached`, and `limitExceeded` {limit: `libraryQuota`}.
    case libraryQuota
    /// `take.*`: movies recorded in segments that are joined in the end.
    case takes
    /// `photo.capture`: photos in stages.
    case photos
    /// Photos of a moment that is over: `ago`, and the photo output's `preRoll`.
    case photosOfThePast
    /// Photos with a movie of the seconds around them: `livePhoto`, and the photo output's `livePhotoCaptureEnabled`.
    case livePhotos
    /// Photos of a chosen size: `maxPhotoDimensions`, and the photo output's `supportedMaxPhotoDimensions`.
    case maxPhotoDimensions
    /// Photos with a DNG of the same frame: `raw`.
    case photosWithRaw
    /// Clients on other machines, for whom a gateway asks (`for`), `bus.leave` and `bus.clock`.
    case remote
    /// `remote` in `state/bus/`: which media clients on other machines may have, by the role of their key or token.
    case remotePermission
    /// Rigs and profiles have an `owner`, and a session's priority above 0 needs an administrator.
    case owners
    /// What a source states about its pictures, in the headers of frames and the heads of rings: `colorRange` and what
    /// else ``FormatExtensions`` has.
    case formatDescriptions
    /// Pictures of more than 8 bits a sample: of clients (`source.create`), the renditions `gray16` and `rgb48`,
    /// movies without loss (`ffv1`), and photos as PNG and TIFF.
    case highBitDepth
    /// Renditions of a part of the picture (`;crop=`), and with sizes as upper bounds (`;fit`).
    case regions
    /// Movies continue when their camera changes the size of its pictures: `didChangeSize`, `source`, `follows`.
    case sizeChanges
    /// `movie.stop`, `pause` and `resume` of a `take` or `rig`, at one moment; `eachCamera` of `movie.start`.
    case movieGroups
    /// When pictures are shown that come in the order in which they are decoded: `presentation` in headers and rings.
    case presentationTimes
    /// `frameRate` as a string is a rate, `"30000/1001"`; before, it was a frame duration.
    case rateFractions
    /// The camera control `cropRectangle`: which part of its picture the sensor takes.
    case cropRectangle
}
