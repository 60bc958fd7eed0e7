import BusProtocol
public import JSON

// How a session is written as JSON: in its state, and for the next coordinator, which reads it back.

extension SessionInput {
    /// {device, mediaType, activeFormat, frameRate, preferredDataSource}, as they were asked.
    var json: JSONValue {
        [
            "device": .string(device), "mediaType": .string(mediaType.rawValue),
            "activeFormat": activeFormat?.json ?? .null, "frameRate": frameRate?.json ?? .null,
            "preferredDataSource": mediaType == .audio ? preferredDataSource.json : .null,
        ]
    }

    fileprivate init(keptJSON json: JSONValue) throws(BusError) {
        var members = json.object ?? [:]
        // Those before this version had cameras only.
        let mediaType = members.removeValue(forKey: "mediaType")?.string.flatMap(MediaType.init(rawValue:))
        // Those before this version wrote durations as "1/30".
        if let duration = members["frameRate"]?.string {
            members["frameRate"] = FrameRateRequest.duration(try FrameDuration(json: .string(duration))).json
        }
        self = try SessionAction.input(.object(members), "")
        self.mediaType = mediaType ?? .video
    }
}

extension SessionOutput {
    /// {id, type, format, width, height, frameRate, quality, rate, channels, whenDenied?, preRoll?,
    /// photoSettingsForSceneMonitoring?, livePhotoCaptureEnabled?, livePhotoCaptureSuspended?,
    /// livePhotoAutoTrimmingEnabled?}; null: as the session has it.
    var json: JSONValue {
        let scene: JSONValue? = kind == .photo ? sceneMonitoring?.json ?? .null : nil
        let held: JSONValue? = kind == .photo ? JSONValue(preRoll) : nil
        let live = kind == .photo ? livePhoto.members : [:]
        return .members([
            "id": .string(id), "type": .string(kind.rawValue),
            "format": (format?.rawValue ?? soundFormat?.rawValue).map(JSONValue.string) ?? .null,
            "width": dimensions.map { JSONValue($0.width) } ?? .null,
            "height": dimensions.map { JSONValue($0.height) } ?? .null,
            "frameRate": frameRate.map(JSONValue.plain) ?? .null,
            "quality": quality.map { JSONValue($0) } ?? .null, "rate": rate.map { JSONValue($0) } ?? .null,
            "channels": channels.map { JSONValue($0) } ?? .null, "whenDenied": isBlankWhenDenied ? "blank" : nil,
            "preRoll": held, "photoSettingsForSceneMonitoring": scene,
            "livePhotoCaptureEnabled": live["livePhotoCaptureEnabled"],
            "livePhotoCaptureSuspended": live["livePhotoCaptureSuspended"],
            "livePhotoAutoTrimmingEnabled": live["livePhotoAutoTrimmingEnabled"],
        ])
    }
}

extension SessionConnection {
    /// {input, output, videoOrientation, videoMirrored, enabled, preferredVideoStabilizationMode}
    var json: JSONValue {
        [
            "input": .string(input), "output": .string(output),
            "videoOrientation": .string(videoOrientation.rawValue), "videoMirrored": videoMirrored.json,
            "enabled": .bool(isEnabled),
            "preferredVideoStabilizationMode": .string(preferredVideoStabilizationMode.rawValue),
        ]
    }
}

extension CaptureSession {
    /// The value of `state/session/<id>/`, but for what only its devices can tell.
    public var members: [String: JSONValue] {
        [
            "id": .string(id), "name": name.map(JSONValue.string) ?? .null, "owner": owner.json,
            "detached": .bool(isDetached), "since": JSONValue(since), "preset": .string(preset.rawValue),
            "priority": JSONValue(priority), "inputs": .array(inputs.map(\.json)),
            "outputs": .array(outputs.map(\.json)), "connections": .array(connections.map(\.json)),
            "state": .string(run.state.rawValue), "wanted": .bool(run.isWanted),
            "interruption": run.interruption?.json ?? .null,
        ]
    }

    /// What the next coordinator needs to go on with it.
    public var keptJSON: JSONValue {
        var kept = members
        for name in ["state", "interruption"] { kept[name] = nil }
        kept["started"] = .bool(run.hasStarted)
        kept["request"] = request.map(JSONValue.string)
        kept["lock"] = lockID.map(JSONValue.string)
        kept["owner"] = owner.keptJSON
        return .object(kept)
    }

    /// Reads what ``keptJSON`` writes; nil when it is something else.
    public init?(keptJSON json: JSONValue) {
        guard let id = json["id"]?.string, DeviceID.isValid(id), let since = json["since"]?.integer,
            let owner = json["owner"].flatMap(LockHolder.init(keptJSON:)), let isDetached = json["detached"]?.bool,
            let preset = json["preset"]?.string.flatMap(SessionPreset.init(rawValue:)),
            let priority = json["priority"]?.integer.flatMap({ Int(exactly: $0) }),
            let isWanted = json["wanted"]?.bool, let hasStarted = json["started"]?.bool,
            let inputs = json["inputs"]?.array, let outputs = json["outputs"]?.array,
            let connections = json["connections"]?.array
        else { return nil }
        self.init(
            id: id, name: json["name"]?.string, owner: owner, isDetached: isDetached, since: since, preset: preset,
            priority: priority, request: json["request"]?.string)
        run = SessionRun(isWanted: isWanted, hasStarted: hasStarted)
        lockID = json["lock"]?.string
        do throws(BusError) {
            for input in inputs { self.inputs.append(try SessionInput(keptJSON: input)) }
            for output in outputs { self.outputs.append(try SessionOutput(keptJSON: output)) }
            for connection in connections { self.connections.append(try SessionConnection(keptJSON: connection)) }
        } catch {
            return nil
        }
    }
}

extension SessionOutput {
    fileprivate init(keptJSON json: JSONValue) throws(BusError) {
        var reader = try MemberReader(json, path: "")
        self.init(id: try reader.string("id"), kind: try reader.word("type"))
        if kind == .audioData {
            if reader.known("format") != nil { soundFormat = try reader.word("format") }
            if reader.known("rate") != nil { rate = Int(try reader.integer("rate", in: 1...768_000)) }
            if reader.known("channels") != nil { channels = Int(try reader.integer("channels", in: 1...64)) }
            return
        }
        isBlankWhenDenied = reader.known("whenDenied") != nil
        // Those before this version held nothing.
        preRoll = Int(try reader.number("preRoll", in: PhotoPreRoll.lengths) ?? 0)
        sceneMonitoring = try reader.known("photoSettingsForSceneMonitoring").map { (value) throws(BusError) in
            try SceneMonitor.Settings(json: value, path: "photoSettingsForSceneMonitoring")
        }
        livePhoto = LivePhotoOutput(members: json)
        if reader.known("format") != nil { format = try reader.word("format") }
        if reader.known("width") != nil {
            dimensions = Dimensions(
                width: Int(try reader.integer("width", in: 0...16384)),
                height: Int(try reader.integer("height", in: 0...16384)))
        }
        frameRate = reader.known("frameRate")?.double
        if reader.known("quality") != nil { quality = Int(try reader.integer("quality", in: 1...100)) }
    }
}

extension SessionConnection {
    fileprivate init(keptJSON json: JSONValue) throws(BusError) {
        var reader = try MemberReader(json, path: "")
        self.init(
            input: try reader.string("input"), output: try reader.string("output"),
            videoOrientation: try reader.word("videoOrientation"),
            videoMirrored: try VideoMirroring(json: try reader.required("videoMirrored"), path: "videoMirrored"),
            isEnabled: try reader.required("enabled").bool ?? true)
        // Those before this version have none.
        if reader.known("preferredVideoStabilizationMode") != nil {
            preferredVideoStabilizationMode = try reader.word("preferredVideoStabilizationMode")
        }
    }
}
