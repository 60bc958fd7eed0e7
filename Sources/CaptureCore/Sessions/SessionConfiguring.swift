public import BusProtocol
import JSON

extension CaptureSession {
    /// What a session may know of the devices there are.
    public struct Surroundings {
        /// nil: there is none of that id.
        public var device: (String) -> SessionDevice?
        /// The ids of all devices, for the refusal of another.
        public var known: [String]
        /// What a device would deliver to a session, or nil, where that is not known. Without it, outputs that can have
        /// nothing are added, too.
        public var pixelFormat: ((CaptureSession, _ device: String) -> PixelFormat?)?

        public init(
            known: [String], pixelFormat: ((CaptureSession, _ device: String) -> PixelFormat?)? = nil,
            device: @escaping (String) -> SessionDevice?
        ) {
            self.known = known
            self.pixelFormat = pixelFormat
            self.device = device
        }
    }

    /// Carries out all actions in their order, or none (`beginConfiguration`, `commitConfiguration`).
    ///
    /// - Parameter actions: each with its place in the request: `actions[0]`.
    /// - Throws: `cannotAddInput` {why}, `cannotAddOutput` {why}, `presetUnsupported` {supported}, `formatUnsupported`
    ///   {nearest}, `deviceNotFound`, or `invalidParams` {path, why}.
    public mutating func configure(
        _ actions: [(action: SessionAction, path: String)], in surroundings: Surroundings
    ) throws(BusError) {
        var changed = self
        for (action, path) in actions { try changed.apply(action, path, surroundings) }
        try changed.checkOutputs(since: self, in: surroundings)
        try changed.setLivePhotos(actions, surroundings)
        self = changed
    }

    private mutating func apply(
        _ action: SessionAction, _ path: String, _ surroundings: Surroundings
    ) throws(BusError) {
        switch action {
        case .addInput(let input): try add(input, surroundings, path)
        case .removeInput(let device):
            guard input(device) != nil else { throw Self.isNoInput(device, "\(path).removeInput") }
            inputs.removeAll { $0.device == device }
            join()
        case .setInput(let device, let format, let rate, let source):
            guard let index = inputs.firstIndex(where: { $0.device == device }) else {
                throw Self.isNoInput(device, "\(path).setInput.device")
            }
            var input = inputs[index]
            input.activeFormat = format.applied(to: input.activeFormat)
            input.frameRate = rate.applied(to: input.frameRate)
            input.preferredDataSource = source.applied(to: input.preferredDataSource) ?? .auto
            try check(input, surroundings, path)
            inputs[index] = input
            if case .set = format, input.mediaType == .video { preset = .inputPriority }
        case .addOutput(let id, let kind, let options): try add(id, kind, options, path)
        case .removeOutput(let id):
            guard output(id) != nil else { throw Self.isNoOutput(id, "\(path).removeOutput") }
            outputs.removeAll { $0.id == id }
            join()
        case .setOutput(let id, let options):
            guard let index = outputs.firstIndex(where: { $0.id == id }) else {
                throw Self.isNoOutput(id, "\(path).setOutput.output")
            }
            outputs[index] = try outputs[index].with(options, path: "\(path).setOutput")
        case .preset(let preset): try set(preset, surroundings)
        case .priority(let priority): self.priority = priority
        case .connection(let input, let output, let orientation, let mirrored, let isEnabled, let stabilization):
            try set(input, output, orientation, mirrored, isEnabled, "\(path).connection")
            if let stabilization { try set(stabilization, input, output, surroundings) }
        }
    }

    // MARK: Inputs

    private mutating func add(
        _ input: SessionInput, _ surroundings: Surroundings, _ path: String
    ) throws(BusError) {
        guard let device = surroundings.device(input.device) else {
            throw .deviceNotFound(input.device, known: surroundings.known)
        }
        guard self.input(input.device) == nil else {
            throw Self.cannotAddInput(input.device, "it is already an input of this session")
        }
        guard inputs.count < Self.maximumInputs else {
            throw Self.cannotAddInput(input.device, "a session has at most \(Self.maximumInputs) inputs")
        }
        var input = input
        input.mediaType = device.mediaType
        if device.mediaType == .audio {
            if let sound = device.sound, sound.formats.isEmpty {
                throw Self.cannotAddInput(input.device, "it has no format")
            }
        } else if let formats = device.formats {
            guard !formats.isEmpty else { throw Self.cannotAddInput(input.device, "it has no format") }
            let takesPreset = input.activeFormat != nil || preset.isSupported(by: formats)
            guard takesPreset else {
                throw Self.cannotAddInput(input.device, "it has no format for the preset \(preset.rawValue)")
            }
        }
        try check(input, surroundings, path)
        inputs.append(input)
        if input.activeFormat != nil, input.mediaType == .video { preset = .inputPriority }
        join()
    }

    // What can be known of a wish without the device.
    private func check(_ input: SessionInput, _ surroundings: Surroundings, _ path: String) throws(BusError) {
        guard input.mediaType == .video else { return try checkSound(input, surroundings, path) }
        guard input.preferredDataSource == .auto else {
            throw .invalidParams(path, "preferredDataSource: \(input.device) is a camera and has no data sources")
        }
        guard let formats = surroundings.device(input.device)?.formats, let first = formats.first,
            input.activeFormat != nil || input.frameRate != nil
        else { return }
        let description = DeviceDescription(
            identity: DeviceIdentity(
                uniqueID: "", localizedName: "", type: .external, position: .unspecified, driver: "", bus: ""),
            formats: formats, controls: [])
        let rates = input.activeFormat == nil ? nil : input.frameRate
        let current = DeviceConfiguration(
            formatID: first.id, format: FormatSelection(pixelFormat: first.pixelFormat, dimensions: first.dimensions))
        let change = ConfigurationChange(device: input.device, activeFormat: input.activeFormat, frameRate: rates)
        _ = try ConfigurationPlanner(description: description).plan(change, path: "", current: current, mode: .exact)
    }

    private func checkSound(_ input: SessionInput, _ surroundings: Surroundings, _ path: String) throws(BusError) {
        guard input.frameRate == nil else {
            throw .invalidParams(
                path,
                "frameRate: \(input.device) is a microphone and has no frame rate; set a sample rate with "
                    + "activeFormat, as in {\"rate\": 48000}"
            )
        }
        guard let sound = surroundings.device(input.device)?.sound else { return }
        if case .source(let id) = input.preferredDataSource, !sound.dataSources.contains(where: { $0.id == id }) {
            let known = sound.dataSources.map(\.id)
            throw .invalidParams(
                path,
                "preferredDataSource: \(input.device) has no data source '\(id)'; it has "
                    + "\(known.isEmpty ? "none" : known.joined(separator: ", "))"
            )
        }
        if let request = input.activeFormat { _ = try sound.format(of: request, device: input.device, mode: .exact) }
    }

    private mutating func set(_ preset: SessionPreset, _ surroundings: Surroundings) throws(BusError) {
        for input in inputs where input.mediaType == .video {
            guard let formats = surroundings.device(input.device)?.formats else { continue }
            guard preset.isSupported(by: formats) else {
                let words = SessionPreset.supported(by: formats).map(\.rawValue)
                throw BusError(
                    .presetUnsupported,
                    "\(input.device) has no format for the preset \(preset.rawValue); it has "
                        + "\(words.joined(separator: ", ")).",
                    ["device": .string(input.device), "supported": JSONValue(words)])
            }
        }
        self.preset = preset
        guard preset != .inputPriority else { return }
        // The preset decides again, and the rate is the format's.
        for index in inputs.indices where inputs[index].mediaType == .video {
            (inputs[index].activeFormat, inputs[index].frameRate) = (nil, nil)
        }
    }

    // MARK: Outputs

    private mutating func add(
        _ id: String?, _ kind: SessionOutput.Kind, _ options: SessionAction.OutputOptions, _ path: String
    ) throws(BusError) {
        guard outputs.count < Self.maximumOutputs else {
            throw Self.cannotAddOutput(kind, "a session has at most \(Self.maximumOutputs) outputs")
        }
        switch kind {
        case .photo, .movie:
            guard !outputs.contains(where: { $0.kind == kind }) else {
                throw Self.cannotAddOutput(kind, "a session has at most one \(kind.rawValue) output")
            }
        case .metadata: throw Self.cannotAddOutput(kind, "this bus does not detect metadata in pictures")
        case .videoData, .audioData, .preview: break
        }
        if let id, output(id) != nil {
            throw Self.cannotAddOutput(kind, "this session already has an output '\(id)'")
        }
        let output = SessionOutput(id: id ?? freeID(kind), kind: kind)
        outputs.append(try output.with(options, path: "\(path).addOutput"))
        join()
    }

    private func freeID(_ kind: SessionOutput.Kind) -> String {
        var (id, number) = (kind.rawValue, 1)
        while output(id) != nil {
            number += 1
            id = "\(kind.rawValue)-\(number)"
        }
        return id
    }

    private mutating func set(
        _ input: String?, _ output: String?, _ orientation: CaptureOrientation?, _ mirrored: VideoMirroring?,
        _ isEnabled: Bool?, _ path: String
    ) throws(BusError) {
        if let input, self.input(input) == nil { throw Self.isNoInput(input, "\(path).input") }
        if let output, self.output(output) == nil { throw Self.isNoOutput(output, "\(path).output") }
        for index in connections.indices {
            guard input == nil || connections[index].input == input,
                output == nil || connections[index].output == output
            else { continue }
            if self.input(connections[index].input)?.mediaType == .audio {
                // Of a movie's connections some are of sound: what is said of pictures is not about them.
                guard input == nil || orientation == nil && mirrored == nil else {
                    throw .invalidParams(
                        path, "the connection of a microphone has no pictures to rotate or mirror")
                }
                connections[index].isEnabled = isEnabled ?? connections[index].isEnabled
                continue
            }
            connections[index].videoOrientation = orientation ?? connections[index].videoOrientation
            connections[index].videoMirrored = mirrored ?? connections[index].videoMirrored
            connections[index].isEnabled = isEnabled ?? connections[index].isEnabled
        }
    }

    private mutating func set(
        _ stabilization: VideoStabilizationMode, _ input: String?, _ output: String?, _ surroundings: Surroundings
    ) throws(BusError) {
        for index in connections.indices {
            guard input == nil || connections[index].input == input,
                output == nil || connections[index].output == output,
                self.input(connections[index].input)?.mediaType != .audio
            else { continue }
            try check(stabilization, of: connections[index].input, in: surroundings)
            connections[index].preferredVideoStabilizationMode = stabilization
        }
    }

    // MARK: Refusals

    static func cannotAddInput(_ device: String, _ why: String) -> BusError {
        BusError(
            .cannotAddInput, "\(device) can't be added: \(why).", ["why": .string(why), "device": .string(device)])
    }

    static func cannotAddOutput(_ kind: SessionOutput.Kind, _ why: String) -> BusError {
        BusError(
            .cannotAddOutput, "\(kind == .audioData ? "An" : "A") \(kind.rawValue) output can't be added: \(why).",
            ["why": .string(why)])
    }

    private static func isNoInput(_ device: String, _ path: String) -> BusError {
        .invalidParams(path, "'\(device)' is not an input of this session")
    }

    private static func isNoOutput(_ id: String, _ path: String) -> BusError {
        .invalidParams(path, "'\(id)' is not an output of this session")
    }
}

extension SessionOutput {
    fileprivate func with(_ options: SessionAction.OutputOptions, path: String) throws(BusError) -> SessionOutput {
        guard options != SessionAction.OutputOptions() else { return self }
        if kind == .movie { return try withMovie(options, path: path) }
        if kind == .photo { return try withPhoto(options, path: path) }
        guard options.preRoll == .keep, options.sceneMonitoring == .keep, options.livePhoto.isNone else {
            throw .invalidParams(
                path, "preRoll, photoSettingsForSceneMonitoring and the live photo options are for photo outputs only")
        }
        guard options.isBlankWhenDenied == .keep else {
            throw .invalidParams(path, "whenDenied is for movie outputs only; a denied topic publishes nothing")
        }
        if kind == .audioData { return try withSound(options, path: path) }
        guard kind.isTopic else {
            throw .invalidParams(path, "a \(kind.rawValue) output has no options")
        }
        guard options.rate == .keep, options.channels == .keep else {
            throw .invalidParams(path, "rate and channels are for sound; pictures have a frameRate")
        }
        if case .set(let sound) = options.soundFormat, sound != .native {
            throw .invalidParams(path, "\(sound.rawValue) is a sound format")
        }
        var output = self
        output.format = options.format.applied(to: format)
        output.dimensions = options.dimensions.applied(to: dimensions)
        output.frameRate = options.frameRate.applied(to: frameRate)
        output.quality = options.quality.applied(to: quality)
        let encoding = output.format ?? kind.encoding
        if output.quality != nil, encoding != .jpeg { throw .invalidParams(path, "quality is for jpeg only") }
        if output.dimensions != nil, encoding == .native {
            throw .invalidParams(path, "native is not converted, so it has no size; leave the size out")
        }
        if let size = output.dimensions, [.yuyv, .nv12, .i420].contains(encoding), size.width % 2 + size.height % 2 > 0
        {
            throw .invalidParams(path, "\(encoding.rawValue) needs an even width and height")
        }
        return output
    }
}

extension SessionOutput {
    fileprivate func withMovie(_ options: SessionAction.OutputOptions, path: String) throws(BusError) -> SessionOutput {
        var others = options
        others.isBlankWhenDenied = .keep
        guard others == SessionAction.OutputOptions() else {
            throw .invalidParams(path, "a movie output has only the option whenDenied")
        }
        var output = self
        output.isBlankWhenDenied = options.isBlankWhenDenied.applied(to: isBlankWhenDenied) ?? false
        return output
    }

    fileprivate func withPhoto(_ options: SessionAction.OutputOptions, path: String) throws(BusError) -> SessionOutput {
        var others = options
        others.preRoll = .keep
        others.sceneMonitoring = .keep
        others.livePhoto = LivePhotoOutput.Wish()
        guard others == SessionAction.OutputOptions() else {
            throw .invalidParams(
                path,
                "a photo output has only the options preRoll, photoSettingsForSceneMonitoring, "
                    + "livePhotoCaptureEnabled, livePhotoCaptureSuspended and livePhotoAutoTrimmingEnabled"
            )
        }
        var output = self
        output.preRoll = options.preRoll.applied(to: preRoll) ?? 0
        output.sceneMonitoring = options.sceneMonitoring.applied(to: sceneMonitoring)
        return output
    }

    /// What an `audioData` output can be asked for.
    public static let rates = 4000...384_000
    public static let channelCounts = 1...8

    fileprivate func withSound(_ options: SessionAction.OutputOptions, path: String) throws(BusError) -> SessionOutput {
        guard options.dimensions == .keep, options.frameRate == .keep, options.quality == .keep else {
            throw .invalidParams(
                path, "an audioData output has only the options format, rate and channels")
        }
        if case .set(let picture) = options.format, picture != .native {
            throw .invalidParams(
                path, "\(picture.rawValue) is a picture format; sound formats are native, s16 and f32")
        }
        var output = self
        output.soundFormat = options.soundFormat.applied(to: soundFormat)
        output.rate = options.rate.applied(to: rate)
        output.channels = options.channels.applied(to: channels)
        if output.soundFormat == .native, output.rate != nil || output.channels != nil {
            throw .invalidParams(path, "native is not converted, so it has no rate and channels; leave them out")
        }
        return output
    }
}

extension BusError {
    /// No device has that id.
    ///
    /// - Parameter known: the ids there are.
    public static func deviceNotFound(_ device: String, known: [String]) -> BusError {
        let list = known.isEmpty ? "There are no devices." : "There are: \(known.joined(separator: ", "))."
        return BusError(.deviceNotFound, "No device is called '\(device)'. \(list)", ["device": .string(device)])
    }
}
