public import BusProtocol
public import JSON

/// The answer of the bus to a photo request: of one camera, or of several at the same moment.
public struct PhotoCapture: Sendable {
    /// Theirs: the request's, or the one that the bus gave it. It is used up.
    public let uniqueID: String
    /// In the order of the cameras, and of each camera's in the order in which they were taken; with `raw` the DNG of a
    /// frame follows its other file, which has the same index.
    public let photos: [ClientPhoto]
    /// Of a live photo; nil: it is none.
    public let livePhotoMovie: ClientLivePhotoMovie?
    /// How far apart the cameras' first frames are; nil: there is one camera.
    public let spread: Duration?
    /// The answer: {uniqueID, resolved, expectedPhotoCount, photos, livePhotoMovie, adjusted, late, spread,
    /// attachments}.
    public let json: JSONValue

    /// How many photos of bursts were taken later than asked.
    public var late: Int { json["late"]?.integer.flatMap { Int(exactly: $0) } ?? 0 }
    /// What a camera took otherwise than it was asked for: {device, path, asked, given, why}, with a path as
    /// `settings.bracket.exposureBias[0]`.
    public var adjusted: [JSONValue] { json["adjusted"]?.array ?? [] }
    /// What the settings came to on each camera: {device, format, width, height, pixelFormat, flash, highResolution,
    /// …}.
    public var resolved: [JSONValue] { json["resolved"]?["devices"]?.array ?? [] }
    /// How many photos the settings ask for.
    public var expectedPhotoCount: Int { json["expectedPhotoCount"]?.integer.flatMap { Int(exactly: $0) } ?? 0 }

    init(_ answer: Answer) throws(ClientError) {
        guard let id = answer.result["uniqueID"]?.string, let listed = answer.result["photos"]?.array else {
            throw .unreadable("The answer of the bus is invalid: it contains no photos.")
        }
        uniqueID = id
        json = answer.result
        spread = answer.result["spread"]?.integer.map { .nanoseconds($0) }
        var photos: [ClientPhoto] = []
        for photo in listed { photos.append(try ClientPhoto(photo, answer.attachments)) }
        self.photos = photos
        if let movie = answer.result["livePhotoMovie"], !movie.isNull {
            livePhotoMovie = try ClientLivePhotoMovie(movie, answer.attachments)
        } else {
            livePhotoMovie = nil
        }
    }
}

/// A photo: the bytes of the file, or its path on the bus's machine, or both.
public struct ClientPhoto: Sendable {
    /// The file, whole with its metadata; nil: it was not asked for in the reply.
    public let data: Payload?
    /// What was answered of it: {device, index, fileType, width, height, bytes, timestamp, sequence, exposure, …}.
    public let json: JSONValue

    /// The camera's id.
    public var device: String { json["device"]?.string ?? "" }
    /// Which it is of this camera's, from 0; a DNG of the same frame as another file has the same.
    public var index: Int { number("index") }
    /// `jpeg`, `dng`, `png` or `tiff`.
    public var fileType: String { json["fileType"]?.string ?? "" }
    /// Pixels, as they are stored: the file says how they are to be turned.
    public var width: Int { number("width") }
    public var height: Int { number("height") }
    /// The file's size.
    public var bytes: Int64 { json["bytes"]?.integer ?? 0 }
    /// When it was taken, CLOCK_MONOTONIC in nanoseconds.
    public var monotonic: Int64 { json["timestamp"]?["monotonic"]?.integer ?? 0 }
    /// The same in nanoseconds since 1970.
    public var realtime: Int64 { json["timestamp"]?["realtime"]?.integer ?? 0 }
    /// False: the camera's exposure had not come to rest within the time that there is for that.
    public var isSettled: Bool { json["settled"]?.bool ?? true }
    /// How much later than its burst asked it was taken; nil: it was not.
    public var late: Duration? { json["late"]?.integer.map { .nanoseconds($0) } }
    /// Where it is in the capture library, as the bus sees it; nil: it is not there.
    public var path: String? { json["path"]?.string }
    /// Its entry in the capture library.
    public var id: String? { json["id"]?.string }
    /// Why it is not in the library, where it was to be: ``data`` has it all the same.
    public var error: BusError? { json["error"].flatMap { $0.isNull ? nil : BusError(wire: $0) } }

    init(_ json: JSONValue, _ attachments: [Payload]) throws(ClientError) {
        self.json = json
        data = try json.delivered("photo", attachments)
    }

    private func number(_ name: String) -> Int { json.count(name) }
}

/// The movie of a live photo: a file's bytes, or where the bus has put it, or both, as of the photo.
///
/// A MOV with H.264, and with AAC where the session has a microphone that may be heard. Programs look for it beside the
/// photo, with the same name but for its ending: `a.jpg` and `a.mov`.
public struct ClientLivePhotoMovie: Sendable {
    /// The file; nil: it was not asked for in the reply.
    public let data: Payload?
    /// What was answered of it: {contentIdentifier, width, height, bytes, duration, photoDisplayTime, dropped, path,
    /// attachment}.
    public let json: JSONValue

    /// A UUID that stands in both files: they are one live photo.
    public var contentIdentifier: String { json["contentIdentifier"]?.string ?? "" }
    /// Pixels, as it is to be shown.
    public var width: Int { json.count("width") }
    public var height: Int { json.count("height") }
    /// The file's size.
    public var bytes: Int64 { json["bytes"]?.integer ?? 0 }
    /// At most twice ``Client/livePhotoReach``; less where less was held before the photo, or the camera was moved.
    public var duration: Duration { json.time("duration") }
    /// From its beginning to the photo.
    public var photoDisplayTime: Duration { json.time("photoDisplayTime") }
    /// How many pictures the camera took in its time that are not in it: the machine was too busy for them.
    public var dropped: Int { json.count("dropped") }
    /// Where it is in the capture library, as the bus sees it; nil: it is not there. Its entry is the photo's.
    public var path: String? { json["path"]?.string }

    init(_ json: JSONValue, _ attachments: [Payload]) throws(ClientError) {
        self.json = json
        data = try json.delivered("movie", attachments)
    }
}

extension JSONValue {
    fileprivate func count(_ name: String) -> Int { self[name]?.integer.flatMap { Int(exactly: $0) } ?? 0 }

    // Seconds, as the wire has them.
    fileprivate func time(_ name: String) -> Duration {
        guard let seconds = self[name]?.double, seconds.isFinite, abs(seconds) < 1e9 else { return .zero }
        return .nanoseconds(Int64((seconds * 1e9).rounded()))
    }

    // The further frame of the reply that `attachment` names; nil: it names none.
    fileprivate func delivered(_ what: String, _ attachments: [Payload]) throws(ClientError) -> Payload? {
        guard let number = self["attachment"]?.integer else { return nil }
        guard let index = Int(exactly: number), attachments.indices.contains(index) else {
            throw .unreadable("The answer of the bus is invalid: its \(what) is missing.")
        }
        return attachments[index]
    }
}
