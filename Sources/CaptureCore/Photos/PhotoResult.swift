public import BusProtocol
public import JSON

/// What a request has become for one device, before its photos are taken (`AVCaptureResolvedPhotoSettings`).
public struct PhotoResolution: Hashable, Sendable {
    /// The device's id.
    public var device: String
    public var format: PhotoFileType
    /// Of the photos, in pixels, as their files have them: turned where the pixels are.
    public var dimensions: Dimensions
    /// What the camera gives for them.
    public var pixelFormat: PixelFormat
    /// There will be a flash of light.
    public var flash: Bool
    public var redEyeReduction: Bool
    public var stabilization: Bool
    public var highResolution: Bool
    /// Of the DNG that each photo comes with; nil: there will be none.
    public var raw: Dimensions?
    /// nil: there will be none.
    public var thumbnail: Dimensions?
    /// As the camera takes it: nearest to what was asked for.
    public var bracket: PhotoBracket?
    /// How many files come.
    public var photos: Int

    public init(
        device: String, format: PhotoFileType, dimensions: Dimensions, pixelFormat: PixelFormat, flash: Bool = false,
        redEyeReduction: Bool = false, stabilization: Bool = false, highResolution: Bool = false,
        raw: Dimensions? = nil, thumbnail: Dimensions? = nil, bracket: PhotoBracket? = nil, photos: Int = 1
    ) {
        self.device = device
        self.format = format
        self.dimensions = dimensions
        self.pixelFormat = pixelFormat
        self.flash = flash
        self.redEyeReduction = redEyeReduction
        self.stabilization = stabilization
        self.highResolution = highResolution
        self.raw = raw
        self.thumbnail = thumbnail
        self.bracket = bracket
        self.photos = photos
    }

    /// Bytes that all files have together at least; nil: that shows only when they are made.
    public var leastBytes: Int64? {
        let ofShot = [leastBytes(of: format, dimensions), raw.flatMap { leastBytes(of: .dng, $0) }].compactMap(\.self)
        return ofShot.isEmpty ? nil : ofShot.reduce(0, +) * Int64(raw == nil ? photos : photos / 2)
    }

    private func leastBytes(of format: PhotoFileType, _ dimensions: Dimensions) -> Int64? {
        let bits = pixelFormat.rawSamples?.bits
        let samples: Int64
        switch format {
        case .dng where bits != nil: samples = 1
        case .tiff: samples = pixelFormat.kind == .grey || pixelFormat.kind == .depth ? 1 : 3
        default: return nil
        }
        // They are stored one by one, without compression.
        return Int64(dimensions.area) * samples * (bits ?? 8 > 8 ? 2 : 1)
    }
}

/// A photo that is finished.
public struct PhotoResult: Hashable, Sendable {
    /// When its exposure began, as the frame's header has it.
    public struct Timestamp: Hashable, Sendable {
        /// CLOCK_MONOTONIC, nanoseconds.
        public var monotonic: Int64
        /// CLOCK_REALTIME, nanoseconds.
        public var realtime: Int64
        /// `startOfExposure`, `endOfFrame` or `dequeue`.
        public var source: String

        public init(monotonic: Int64, realtime: Int64, source: String) {
            self.monotonic = monotonic
            self.realtime = realtime
            self.source = source
        }
    }

    /// How it was exposed, as far as that is known.
    public struct Exposure: Hashable, Sendable {
        /// Nanoseconds.
        public var duration: Int64?
        public var iso: Double?
        /// EV.
        public var bias: Double?

        public init(duration: Int64? = nil, iso: Double? = nil, bias: Double? = nil) {
            self.duration = duration
            self.iso = iso
            self.bias = bias
        }
    }

    /// The device's id.
    public var device: String
    /// From 0, of this device's: two files of one frame have the same.
    public var index: Int
    public var fileType: PhotoFileType
    /// Pixels.
    public var dimensions: Dimensions
    /// Of the file.
    public var bytes: Int
    public var timestamp: Timestamp
    /// The frame's `captureSequence` within `stream`.
    public var sequence: UInt64
    public var stream: String
    /// nil: nothing is known of it.
    public var exposure: Exposure?
    public var flashFired: Bool?
    /// False: the camera had not found its exposure when the time for that was over.
    public var isSettled: Bool
    /// How much later than its burst asked for it was taken, nanoseconds; nil: it was not.
    public var late: Int64?
    public var thumbnail: Dimensions?
    /// The file in the library, absolute.
    public var path: String?
    /// The entry in the library.
    public var id: String?
    /// Why it is not in the library, where it should be; it is in the reply.
    public var error: BusError?
    /// Which of the reply's further frames it is, from 0.
    public var attachment: Int?

    public init(
        device: String, index: Int, fileType: PhotoFileType, dimensions: Dimensions, bytes: Int, timestamp: Timestamp,
        sequence: UInt64, stream: String, exposure: Exposure? = nil, flashFired: Bool? = nil, isSettled: Bool = true,
        late: Int64? = nil, thumbnail: Dimensions? = nil, path: String? = nil, id: String? = nil,
        error: BusError? = nil, attachment: Int? = nil
    ) {
        self.device = device
        self.index = index
        self.fileType = fileType
        self.dimensions = dimensions
        self.bytes = bytes
        self.timestamp = timestamp
        self.sequence = sequence
        self.stream = stream
        self.exposure = exposure
        self.flashFired = flashFired
        self.isSettled = isSettled
        self.late = late
        self.thumbnail = thumbnail
        self.path = path
        self.id = id
        self.error = error
        self.attachment = attachment
    }

    /// Its place among the files of its device: of one frame a DNG comes last.
    public var rank: Int { 2 * index + (fileType == .dng ? 1 : 0) }

    func isSameFile(as other: PhotoResult) -> Bool {
        device == other.device && index == other.index && fileType == other.fileType
    }
}

/// Whether a device can take a photo now (`AVCapturePhotoOutput.CaptureReadiness`).
public enum PhotoReadiness: String, Hashable, Sendable, CaseIterable {
    /// It streams for nobody: a photo would open it first, and wait for its exposure.
    case notRunning
    case ready
    /// One is being taken: another one waits for it.
    case waitingForCapture
    /// As many are being made as may be: another one waits for one of them.
    case waitingForProcessing
    /// It can't now, and a request would be refused: the device is gone, or its worker.
    case notReady
}

// MARK: In JSON

extension PhotoResolution {
    public var json: JSONValue {
        .members([
            "device": .string(device), "format": .string(format.rawValue), "width": JSONValue(dimensions.width),
            "height": JSONValue(dimensions.height), "pixelFormat": .string(pixelFormat.name), "flash": .bool(flash),
            "redEyeReduction": .bool(redEyeReduction), "stabilization": .bool(stabilization),
            "highResolution": .bool(highResolution), "raw": raw?.json, "thumbnail": thumbnail?.json,
            "bracket": bracket?.json,
            "photos": JSONValue(photos),
        ])
    }

    /// Reads what ``json`` writes; what it doesn't know is left out.
    ///
    /// - Throws: `invalidParams` with the member that is missing or wrong.
    public init(json: JSONValue, path: String = "resolution") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        device = try reader.string("device")
        format = try reader.word("format")
        dimensions = try Dimensions(from: &reader)
        guard let pixelFormat = PixelFormat(try reader.string("pixelFormat")) else {
            throw .invalidParams(reader.path(of: "pixelFormat"), "must be a four-character code such as \"YUYV\"")
        }
        self.pixelFormat = pixelFormat
        flash = try reader.flag("flash") ?? false
        redEyeReduction = try reader.flag("redEyeReduction") ?? false
        stabilization = try reader.flag("stabilization") ?? false
        highResolution = try reader.flag("highResolution") ?? false
        raw = try reader.dimensions("raw")
        thumbnail = try reader.dimensions("thumbnail")
        bracket = try reader.known("bracket").map { (value) throws(BusError) in
            try PhotoBracket(json: value, path: reader.path(of: "bracket"))
        }
        photos = Int(try reader.integer("photos", in: 1...PhotoSettings.mostFiles))
    }
}

extension PhotoResult {
    public var json: JSONValue {
        .members([
            "device": .string(device), "index": JSONValue(index), "fileType": .string(fileType.rawValue),
            "width": JSONValue(dimensions.width), "height": JSONValue(dimensions.height), "bytes": JSONValue(bytes),
            "timestamp": [
                "monotonic": .integer(timestamp.monotonic), "realtime": .integer(timestamp.realtime),
                "source": .string(timestamp.source),
            ],
            "sequence": JSONValue(sequence), "stream": .string(stream), "exposure": exposure?.json,
            "flashFired": flashFired.map(JSONValue.bool), "settled": .bool(isSettled),
            "late": late.map(JSONValue.integer), "thumbnail": thumbnail?.json,
            "path": path.map(JSONValue.string), "id": id.map(JSONValue.string), "error": error?.json,
            "attachment": attachment.map { JSONValue($0) },
        ])
    }

    /// Reads what ``json`` writes; what it doesn't know is left out.
    ///
    /// - Throws: `invalidParams` with the member that is missing or wrong.
    public init(json: JSONValue, path: String = "photo") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        device = try reader.string("device")
        index = Int(try reader.integer("index", in: 0...PhotoSettings.bursts.upperBound))
        fileType = try reader.word("fileType")
        dimensions = try Dimensions(from: &reader)
        bytes = Int(try reader.integer("bytes", in: 1 ... .max))
        var time = try MemberReader(try reader.required("timestamp"), path: reader.path(of: "timestamp"))
        timestamp = Timestamp(
            monotonic: try time.integer("monotonic"), realtime: try time.integer("realtime"),
            source: try time.string("source"))
        sequence = UInt64(try reader.integer("sequence", in: 0 ... .max))
        stream = try reader.string("stream")
        exposure = try reader.known("exposure").map { (value) throws(BusError) in
            try Exposure(json: value, path: reader.path(of: "exposure"))
        }
        flashFired = try reader.flag("flashFired")
        isSettled = try reader.flag("settled") ?? true
        late = try reader.number("late", in: 0 ... .max)
        thumbnail = try reader.dimensions("thumbnail")
        self.path = try reader.text("path")
        id = try reader.text("id")
        error = reader.known("error").map(BusError.init(wire:))
        attachment = try reader.number("attachment", in: 0...100_000).map { Int($0) }
    }
}

extension PhotoResult.Exposure {
    /// {duration?: seconds, iso?, bias?: EV}
    var json: JSONValue {
        .members([
            "duration": duration.map { .number(Double($0) / 1e9) }, "iso": iso.map(JSONValue.number),
            "bias": bias.map(JSONValue.number),
        ])
    }

    init(json: JSONValue, path: String) throws(BusError) {
        var reader = try MemberReader(json, path: path)
        duration = reader.known("duration")?.double.flatMap { Int64(exactly: ($0 * 1e9).rounded()) }
        iso = reader.known("iso")?.double
        bias = reader.known("bias")?.double
    }
}

extension MemberReader {
    fileprivate mutating func dimensions(_ name: String) throws(BusError) -> Dimensions? {
        guard let value = known(name) else { return nil }
        var reader = try MemberReader(value, path: path(of: name))
        return try Dimensions(from: &reader)
    }
}
