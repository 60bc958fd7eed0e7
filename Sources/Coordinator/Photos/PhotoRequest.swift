import BusProtocol
import CaptureCore
import JSON
import ZeroMQ

/// What a client has asked for with `photo.capture`, checked.
struct PhotoRequest {
    struct Camera {
        /// As it was called when it was asked for.
        var device: PhotoPlace.Device
        var orientation: CaptureOrientation
        var isMirrored: Bool
    }

    /// The `uniqueID`.
    var id: String
    var settings: PhotoSettings
    var cameras: [Camera] = []
    var owner: LockHolder
    var session: String?
    var rig: String?
    /// The lock under which the cameras may be set, apart from locks of its owner: the session's, or the one in the
    /// request.
    var lockID: String?
    /// The files go with the reply.
    var isAttached = false
    /// They go into the library.
    var isStored = false
    /// What the files are called.
    var name: String?
    /// When they are to have been taken, where that is over (`ago`): monotonic nanoseconds; nil: when their turn comes.
    var moment: Instant?
    /// Of a live photo, by which its two files are one.
    var identifier: LivePhotoIdentifier?
    /// Why they don't go into the library, which they were to.
    var notStored: BusError?

    init(id: String, settings: PhotoSettings, owner: LockHolder) {
        self.id = id
        self.settings = settings
        self.owner = owner
    }

    var devices: [String] { cameras.map(\.device.id) }

    /// - Parameter uniqueID: the device's: its id may have changed.
    func camera(_ uniqueID: String) -> Camera? { cameras.first { $0.device.uniqueID == uniqueID } }

    /// How long the photos of one camera take at least, nanoseconds.
    var duration: Int64 {
        let exposures: Int64 =
            if case .exposureDuration(let steps)? = settings.bracket { steps.reduce(0, +) } else { 0 }
        return exposures + settings.interval * Int64(settings.burst - 1)
    }

    /// What a camera's files are called, without number and ending.
    ///
    /// - Throws: `invalidParams` {path: "name"}.
    func stem(of device: String, time: String) throws(BusError) -> String {
        try PhotoName.stem(
            name: name, time: time, uniqueID: id, device: cameras.count > 1 ? device : nil, format: settings.format,
            withRaw: settings.withRaw)
    }

    /// The members of a photo in events and replies: also why it was not stored.
    func told(_ photo: JSONValue) -> JSONValue {
        guard let notStored, var members = photo.object, members["path"] == nil else { return photo }
        members["error"] = members["error"] ?? notStored.json
        return .object(members)
    }

    /// The same for the photos in an error's data.
    func told(_ error: BusError) -> BusError {
        guard notStored != nil, let photos = error.data["photos"]?.array else { return error }
        var error = error
        error.data["photos"] = .array(photos.map(told))
        return error
    }

    /// - Parameter files: of the photos, in their order, if they go with the reply.
    func answer(_ outcome: PhotoOutcome, files: [Message]) -> CallReply {
        func answer(attaches: Bool) -> [String: JSONValue] {
            var members = outcome.json(attaches: attaches).object ?? [:]
            members["photos"] = .array((members["photos"]?.array ?? []).map(told))
            let adjusted = outcome.resolutions.flatMap {
                // Drivers round exposures, or ignore them: only the photos show it.
                $0.with(exposuresOf: outcome.photos).adjustments(to: settings)
            }
            if !adjusted.isEmpty { members["adjusted"] = .array(adjusted) }
            return members
        }
        guard !files.isEmpty else { return .success(.object(answer(attaches: false))) }
        var later = answer(attaches: false)
        later["attachmentsGone"] = true
        return CallReply(
            result: .success(.object(answer(attaches: true))), attachments: files, later: .object(later))
    }
}
