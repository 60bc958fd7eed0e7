public import BusProtocol
public import JSON

/// How a camera finds its focus: AVFoundation's `AVCaptureDevice.Format.AutoFocusSystem`.
public enum AutoFocusSystem: String, Hashable, Sendable, CaseIterable {
    case none, contrastDetection, phaseDetection
}

/// What a format says beside its size and its rates. V4L2 has no word for any of it: nil is unknown.
public struct FormatTraits: Hashable, Sendable {
    public var colorRange: VideoColorRange?
    /// The largest still picture that can be had while this format streams.
    public var highResolutionStillImageDimensions: Dimensions?
    /// Across the width, in degrees.
    public var videoFieldOfView: Double?
    /// Of `off`, `standard`, `cinematic` and `auto`.
    public var supportedVideoStabilizationModes: [String]?
    /// 1: it can't zoom.
    public var videoMaxZoomFactor: Double?
    /// From this factor on the picture is enlarged, and shows no more than before.
    public var videoZoomFactorUpscaleThreshold: Double?
    public var autoFocusSystem: AutoFocusSystem?
    public var minISO: Double?
    public var maxISO: Double?
    /// Seconds.
    public var minExposureDuration: Double?
    /// Seconds.
    public var maxExposureDuration: Double?
    public var videoHDRSupported: Bool?

    /// All unknown.
    public init() {}

    /// {colorRange, highResolutionStillImageDimensions, …}: all of them, null where it isn't known.
    public var members: [String: JSONValue] {
        func number(_ value: Double?) -> JSONValue { value.map(JSONValue.tidy) ?? .null }
        return [
            "colorRange": (colorRange?.rawValue).map(JSONValue.string) ?? .null,
            "highResolutionStillImageDimensions": highResolutionStillImageDimensions?.json ?? .null,
            "videoFieldOfView": number(videoFieldOfView),
            "supportedVideoStabilizationModes": supportedVideoStabilizationModes.map { JSONValue($0) } ?? .null,
            "videoMaxZoomFactor": number(videoMaxZoomFactor),
            "videoZoomFactorUpscaleThreshold": number(videoZoomFactorUpscaleThreshold),
            "autoFocusSystem": (autoFocusSystem?.rawValue).map(JSONValue.string) ?? .null,
            "minISO": number(minISO), "maxISO": number(maxISO), "minExposureDuration": number(minExposureDuration),
            "maxExposureDuration": number(maxExposureDuration),
            "videoHDRSupported": videoHDRSupported.map(JSONValue.bool) ?? .null,
        ]
    }

    /// Reads what ``members`` writes, out of a format's other members.
    init(from reader: inout MemberReader) throws(BusError) {
        func number(_ name: String) throws(BusError) -> Double? {
            guard let value = reader.known(name) else { return nil }
            guard let number = value.double else { throw .invalidParams(reader.path(of: name), "must be a number") }
            return number
        }
        colorRange = reader.known("colorRange") == nil ? nil : try reader.word("colorRange")
        if let size = reader.known("highResolutionStillImageDimensions") {
            var inner = try MemberReader(size, path: reader.path(of: "highResolutionStillImageDimensions"))
            highResolutionStillImageDimensions = try Dimensions(from: &inner)
        }
        videoFieldOfView = try number("videoFieldOfView")
        supportedVideoStabilizationModes = reader.known("supportedVideoStabilizationModes")?.array?
            .compactMap(\.string)
        videoMaxZoomFactor = try number("videoMaxZoomFactor")
        videoZoomFactorUpscaleThreshold = try number("videoZoomFactorUpscaleThreshold")
        autoFocusSystem = reader.known("autoFocusSystem") == nil ? nil : try reader.word("autoFocusSystem")
        minISO = try number("minISO")
        maxISO = try number("maxISO")
        minExposureDuration = try number("minExposureDuration")
        maxExposureDuration = try number("maxExposureDuration")
        videoHDRSupported = reader.known("videoHDRSupported")?.bool
    }
}

extension JSONValue {
    /// A number as people write it: whole ones as integers.
    static func tidy(_ value: Double) -> JSONValue { Int64(exactly: value).map(JSONValue.integer) ?? .number(value) }
}
