public import BusProtocol
public import JSON

/// One step of `session.configure`: an object with one member, which says what.
public enum SessionAction: Hashable, Sendable {
    /// What is to become of an option.
    public enum Setting<Value: Hashable & Sendable>: Hashable, Sendable {
        case keep, reset
        case set(Value)

        func applied(to value: Value?) -> Value? {
            switch self {
            case .keep: value
            case .reset: nil
            case .set(let new): new
            }
        }
    }

    /// The options of an output that has pictures of its own.
    public struct OutputOptions: Hashable, Sendable {
        public var format: Setting<Rendition.Encoding> = .keep
        public var dimensions: Setting<Dimensions> = .keep
        public var frameRate: Setting<Double> = .keep
        public var quality: Setting<Int> = .keep
        public var soundFormat: Setting<SoundRendition.Encoding> = .keep
        public var rate: Setting<Int> = .keep
        public var channels: Setting<Int> = .keep
        /// Black, or silence, in the place of what may not be had.
        public var isBlankWhenDenied: Setting<Bool> = .keep
        /// Milliseconds for which pictures are held.
        public var preRoll: Setting<Int> = .keep
        public var sceneMonitoring: Setting<SceneMonitor.Settings> = .keep
        /// What is asked for of live photos; it is decided when all actions are carried out.
        public var livePhoto = LivePhotoOutput.Wish()

        public init() {}
    }

    case addInput(SessionInput)
    case removeInput(device: String)
    case setInput(
        device: String, activeFormat: Setting<FormatRequest>, frameRate: Setting<FrameRateRequest>,
        preferredDataSource: Setting<DataSourcePreference> = .keep)
    /// Without an id it gets its kind's name, with a number where that is taken.
    case addOutput(id: String?, SessionOutput.Kind, OutputOptions)
    case removeOutput(id: String)
    case setOutput(id: String, OutputOptions)
    case preset(SessionPreset)
    case priority(Int)
    /// nil: all connections of the output, or of the input.
    case connection(
        input: String?, output: String?, videoOrientation: CaptureOrientation?, videoMirrored: VideoMirroring?,
        isEnabled: Bool?, preferredVideoStabilizationMode: VideoStabilizationMode? = nil)

    /// Reads an action; unknown members are refused by name.
    ///
    /// - Parameter path: where it stands in the request: `actions[0]`.
    public static func parse(_ json: JSONValue, path: String) throws(BusError) -> SessionAction {
        guard let members = json.object, members.count == 1, let (name, value) = members.first else {
            throw .invalidParams(path, "must be an object with one member, such as {\"addInput\": …}")
        }
        let place = "\(path).\(name)"
        switch name {
        case "addInput": return .addInput(try input(value, place))
        case "removeInput": return .removeInput(device: try word(value, "device", place))
        case "setInput":
            var reader = try MemberReader(value, path: place)
            let action = SessionAction.setInput(
                device: try reader.string("device"),
                activeFormat: try setting(&reader, "activeFormat", FormatRequest.parse),
                frameRate: try setting(&reader, "frameRate", FrameRateRequest.parse),
                preferredDataSource: try setting(&reader, "preferredDataSource", DataSourcePreference.parse))
            try reader.refuseOthers()
            return action
        case "addOutput":
            if let kind = value.string { return .addOutput(id: nil, try outputKind(kind, place), OutputOptions()) }
            var reader = try MemberReader(value, path: place)
            let kind = try outputKind(try reader.string("type"), reader.path(of: "type"))
            let id = reader.known("id") == nil ? nil : try outputID(&reader, "id")
            return .addOutput(id: id, kind, try options(&reader))
        case "removeOutput": return .removeOutput(id: try word(value, "output", place))
        case "setOutput":
            var reader = try MemberReader(value, path: place)
            let id = try reader.string("output")
            return .setOutput(id: id, try options(&reader))
        case "preset": return .preset(try preset(value, place))
        case "priority": return .priority(try priority(value, place))
        case "connection": return try connection(value, place)
        default:
            throw .invalidParams(
                place,
                "is not an action; the actions are addInput, removeInput, setInput, addOutput, removeOutput, "
                    + "setOutput, preset, "
                    + "priority and connection")
        }
    }

    /// Reads a device's id, or {device, activeFormat?, frameRate?, preferredDataSource?}.
    public static func input(_ json: JSONValue, _ path: String) throws(BusError) -> SessionInput {
        if let device = json.string { return SessionInput(device: device) }
        var reader = try MemberReader(json, path: path)
        var input = SessionInput(device: try reader.string("device"))
        if let format = reader.known("activeFormat") {
            input.activeFormat = try .parse(format, path: reader.path(of: "activeFormat"))
        }
        if let rate = reader.known("frameRate") {
            input.frameRate = try .parse(rate, path: reader.path(of: "frameRate"))
        }
        if let source = reader.known("preferredDataSource") {
            input.preferredDataSource = try .parse(source, path: reader.path(of: "preferredDataSource"))
        }
        try reader.refuseOthers()
        return input
    }

    public static func preset(_ json: JSONValue, _ path: String) throws(BusError) -> SessionPreset {
        guard let preset = json.string.flatMap(SessionPreset.init(rawValue:)) else {
            let words = SessionPreset.allCases.map(\.rawValue).joined(separator: ", ")
            throw .invalidParams(path, "must be one of \(words)")
        }
        return preset
    }

    public static func priority(_ json: JSONValue, _ path: String) throws(BusError) -> Int {
        guard let number = json.integer, CaptureSession.priorities.contains(Int(clamping: number)) else {
            let range = CaptureSession.priorities
            throw .invalidParams(path, "must be an integer from \(range.lowerBound) to \(range.upperBound)")
        }
        return Int(number)
    }

    // MARK: The parts

    // A bare string is enough where one member is all that is needed.
    private static func word(_ json: JSONValue, _ member: String, _ path: String) throws(BusError) -> String {
        if let text = json.string { return text }
        var reader = try MemberReader(json, path: path)
        let text = try reader.string(member)
        try reader.refuseOthers()
        return text
    }

    private static func outputKind(_ text: String, _ path: String) throws(BusError) -> SessionOutput.Kind {
        guard let kind = SessionOutput.Kind(rawValue: text) else {
            let words = SessionOutput.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw .invalidParams(path, "must be one of \(words)")
        }
        return kind
    }

    private static func outputID(_ reader: inout MemberReader, _ name: String) throws(BusError) -> String {
        let id = try reader.string(name)
        let isID = (1...32).contains(id.utf8.count) && Topic.isNonce(Array(id.utf8))
        guard isID else {
            throw .invalidParams(reader.path(of: name), "must be 1 to 32 characters of A-Z, a-z, 0-9, '_' and '-'")
        }
        return id
    }

    private static func setting<Value>(
        _ reader: inout MemberReader, _ name: String, _ read: (JSONValue, String) throws(BusError) -> Value
    ) throws(BusError) -> Setting<Value> {
        guard let json = reader.value(name) else { return .keep }
        return json.isNull ? .reset : .set(try read(json, reader.path(of: name)))
    }

    private static func options(_ reader: inout MemberReader) throws(BusError) -> OutputOptions {
        var options = OutputOptions()
        try readFormat(&reader, &options)
        let (width, height) = (reader.value("width"), reader.value("height"))
        switch (width, height) {
        case (nil, nil): break
        case (.null?, nil), (nil, .null?), (.null?, .null?): options.dimensions = .reset
        default:
            // A side that is not given follows the other.
            let side = { (name: String, reader: inout MemberReader) throws(BusError) -> Int in
                reader.known(name) == nil ? 0 : Int(try reader.integer(name, in: 0...16384))
            }
            let size = Dimensions(width: try side("width", &reader), height: try side("height", &reader))
            guard size.width > 0 || size.height > 0 else {
                throw .invalidParams(reader.path(of: "width"), "and height can't both be 0")
            }
            options.dimensions = .set(size)
        }
        options.frameRate = try setting(&reader, "frameRate") { json, path throws(BusError) in
            let rate = try FrameRate(json: json, path: path).framesPerSecond
            guard rate <= Double(Rendition.maxRate) else {
                throw .invalidParams(path, "must be at most \(Rendition.maxRate) frames per second")
            }
            return rate
        }
        options.quality = try setting(&reader, "quality") { json, path throws(BusError) in
            guard let quality = json.integer, (1...100).contains(quality) else {
                throw .invalidParams(path, "must be 1 to 100")
            }
            return Int(quality)
        }
        options.rate = try setting(&reader, "rate") { json, path throws(BusError) in
            guard let rate = json.integer, SessionOutput.rates.contains(Int(clamping: rate)) else {
                let range = SessionOutput.rates
                throw .invalidParams(path, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return Int(rate)
        }
        options.channels = try setting(&reader, "channels") { json, path throws(BusError) in
            guard let channels = json.integer, SessionOutput.channelCounts.contains(Int(clamping: channels)) else {
                let range = SessionOutput.channelCounts
                throw .invalidParams(path, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return Int(channels)
        }
        options.isBlankWhenDenied = try setting(&reader, "whenDenied") { json, path throws(BusError) in
            guard json == "blank" else { throw .invalidParams(path, "must be \"blank\"") }
            return true
        }
        options.preRoll = try setting(&reader, "preRoll") { json, path throws(BusError) in
            guard let milliseconds = json.integer, PhotoPreRoll.lengths.contains(milliseconds) else {
                throw .invalidParams(path, "must be a whole number of milliseconds, at most \(PhotoPreRoll.longest)")
            }
            return Int(milliseconds)
        }
        options.sceneMonitoring = try setting(&reader, "photoSettingsForSceneMonitoring") {
            json, path throws(BusError) in
            try SceneMonitor.Settings(json: json, path: path)
        }
        options.livePhoto = try LivePhotoOutput.Wish(&reader)
        try reader.refuseOthers()
        return options
    }

    // A word is of pictures, of sound, or, as native, of both.
    private static func readFormat(_ reader: inout MemberReader, _ options: inout OutputOptions) throws(BusError) {
        guard let json = reader.value("format") else { return }
        if json.isNull {
            options.format = .reset
            options.soundFormat = .reset
            return
        }
        let (picture, sound) = (
            json.string.flatMap(Rendition.Encoding.init), json.string.flatMap(SoundRendition.Encoding.init)
        )
        guard picture != nil || sound != nil else {
            let words = Rendition.Encoding.allCases.map(\.rawValue) + ["s16", "f32"]
            throw .invalidParams(reader.path(of: "format"), "must be one of \(words.joined(separator: ", "))")
        }
        if let picture { options.format = .set(picture) }
        if let sound { options.soundFormat = .set(sound) }
    }

    private static func connection(_ json: JSONValue, _ path: String) throws(BusError) -> SessionAction {
        var reader = try MemberReader(json, path: path)
        let input = reader.known("input") == nil ? nil : try reader.string("input")
        let output = reader.known("output") == nil ? nil : try reader.string("output")
        let orientation: CaptureOrientation? =
            reader.known("videoOrientation") == nil ? nil : try reader.word("videoOrientation")
        let mirrored = try reader.value("videoMirrored").map { json throws(BusError) in
            try VideoMirroring(json: json, path: reader.path(of: "videoMirrored"))
        }
        var isEnabled: Bool?
        if let json = reader.value("enabled") {
            guard let bool = json.bool else {
                throw .invalidParams(reader.path(of: "enabled"), "must be true or false")
            }
            isEnabled = bool
        }
        let stabilization: VideoStabilizationMode? =
            reader.known("preferredVideoStabilizationMode") == nil
            ? nil : try reader.word("preferredVideoStabilizationMode")
        try reader.refuseOthers()
        guard input != nil || output != nil else {
            throw .invalidParams(path, "needs an output, an input or both")
        }
        return .connection(
            input: input, output: output, videoOrientation: orientation, videoMirrored: mirrored, isEnabled: isEnabled,
            preferredVideoStabilizationMode: stabilization)
    }
}

extension VideoMirroring {
    /// true, false or `"auto"`
    public var json: JSONValue {
        switch self {
        case .on: true
        case .off: false
        case .auto: "auto"
        }
    }

    init(json: JSONValue, path: String) throws(BusError) {
        switch (json.bool, json.string) {
        case (true?, _): self = .on
        case (false?, _): self = .off
        case (_, "auto"?): self = .auto
        default: throw .invalidParams(path, "must be true, false or \"auto\"")
        }
    }
}

extension DataSourcePreference {
    /// `auto`, or a source's id.
    public var json: JSONValue {
        switch self {
        case .auto: "auto"
        case .source(let id): .string(id)
        }
    }

    static func parse(_ json: JSONValue, path: String) throws(BusError) -> Self {
        guard let text = json.string, (1...64).contains(text.utf8.count) else {
            throw .invalidParams(path, "must be \"auto\" or the id of one of the device's dataSources")
        }
        return text == "auto" ? .auto : .source(text)
    }
}
