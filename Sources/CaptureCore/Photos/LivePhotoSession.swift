import BusProtocol
public import JSON

// What a session has of live photos, as it is asked for, decided and told.

extension LivePhotoOutput {
    /// livePhotoCaptureEnabled, livePhotoCaptureSuspended, livePhotoAutoTrimmingEnabled
    public var members: [String: JSONValue] {
        [
            "livePhotoCaptureEnabled": .bool(isEnabled), "livePhotoCaptureSuspended": .bool(isSuspended),
            "livePhotoAutoTrimmingEnabled": .bool(isAutoTrimming),
        ]
    }

    /// Reads what ``members`` writes; what isn't there is as it is where nobody asks.
    init(members json: JSONValue) {
        self.init(
            isEnabled: json["livePhotoCaptureEnabled"]?.bool ?? false,
            isSuspended: json["livePhotoCaptureSuspended"]?.bool ?? false,
            isAutoTrimming: json["livePhotoAutoTrimmingEnabled"]?.bool ?? true)
    }
}

extension LivePhotoOutput.Wish {
    /// Nothing is asked for.
    var isNone: Bool { self == Self() }

    /// Reads the members of an output; null: as where nobody asks.
    init(_ reader: inout MemberReader) throws(BusError) {
        func flag(_ name: String, usual: Bool, _ reader: inout MemberReader) throws(BusError) -> Bool? {
            guard let value = reader.value(name) else { return nil }
            return value.isNull ? usual : try reader.flag(name)
        }
        self.init(
            isEnabled: try flag("livePhotoCaptureEnabled", usual: false, &reader),
            isSuspended: try flag("livePhotoCaptureSuspended", usual: false, &reader),
            isAutoTrimming: try flag("livePhotoAutoTrimmingEnabled", usual: true, &reader))
    }
}

extension CaptureSession {
    /// Its photo output.
    public var photoOutput: SessionOutput? { outputs.first { $0.kind == .photo } }

    /// Carries out what actions ask of live photos, when the session is otherwise as they want it: their order among
    /// the others doesn't count. What can't be any more is off.
    mutating func setLivePhotos(
        _ actions: [(action: SessionAction, path: String)], _ surroundings: Surroundings
    ) throws(BusError) {
        guard let index = outputs.firstIndex(where: { $0.kind == .photo }) else { return }
        let obstacle = livePhotoObstacle(surroundings.device)
        for (action, path) in actions {
            let asked: (wish: LivePhotoOutput.Wish, place: String)? =
                switch action {
                case .addOutput(_, .photo, let options): (options.livePhoto, "\(path).addOutput")
                case .setOutput(let id, let options) where id == outputs[index].id:
                    (options.livePhoto, "\(path).setOutput")
                default: nil
                }
            guard let (wish, place) = asked else { continue }
            _ = try outputs[index].livePhoto.set(wish, obstacle: wish.isEnabled == true ? obstacle : nil, path: place)
        }
        settleLivePhotos(obstacle)
    }

    /// Turns live photos off where there can be none.
    ///
    /// - Parameter obstacle: why there can't; nil: there can.
    public mutating func settleLivePhotos(_ obstacle: String?) {
        guard let index = outputs.firstIndex(where: { $0.kind == .photo }) else { return }
        _ = outputs[index].livePhoto.settle(obstacle: obstacle)
    }
}
