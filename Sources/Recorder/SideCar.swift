import CaptureCore
import JSON

/// The file beside a movie that has a line for each frame: what its first line says.
enum SideCar {
    /// {movie, camera, microphone, fileType, take, part, rig, firstFrame, notBefore, startOffset}: times are nanoseconds of CLOCK_MONOTONIC,
    /// `startOffset` is how long after `notBefore` the first frame was taken.
    static func head(_ request: MovieRequest, firstFrame: Int64) -> JSONValue {
        [
            "movie": .string(request.movie), "camera": request.camera?.json ?? .null,
            "microphone": request.microphone?.json ?? .null, "fileType": .string(request.fileType.rawValue),
            "take": request.take.map(JSONValue.string) ?? .null, "part": JSONValue(request.part),
            "rig": request.rig.map(JSONValue.string) ?? .null, "firstFrame": .integer(firstFrame),
            "notBefore": request.notBefore.map(JSONValue.integer) ?? .null,
            "startOffset": request.notBefore.map { .integer(firstFrame - $0) } ?? .null,
        ]
    }

    /// The line in front of the first frame of another camera, which counts by itself: {camera}.
    static func change(_ camera: MovieRequest.Device) -> JSONValue { ["camera": camera.json] }
}
