import BusProtocol
import CaptureCore
import CaptureSources
import Glibc
import JSON
import LinuxIO
import PhotoFile

/// What a photo asks of the device beside how it is set.
enum PhotoChange {
    /// Where the steps of a bracket begin from.
    struct Neutral: Hashable, Sendable {
        /// Seconds; nil: the camera exposes by itself and is told how much brighter.
        var duration: Double?
    }

    /// What is to be set before all; nil: nothing.
    ///
    /// - Parameter device: its id, for errors.
    static func base(
        _ settings: PhotoSettings, _ now: DeviceSnapshot, of device: String
    ) throws(BusError) -> JSONValue? {
        var members: [String: JSONValue] = [:]
        if settings.changesSize, let format = try format(settings, now, of: device) { members["activeFormat"] = format }
        if settings.flash != .off {
            guard case .word(let words)? = now.cameraControls.kind(.flashMode) else {
                throw unsupported(.flashMode, "flash", now, device)
            }
            let isLeft = settings.flash == .auto && words.contains("auto")
            members["controls"] = ["flashMode": isLeft ? "auto" : "on"]
        }
        return members.isEmpty ? nil : .object(members)
    }

    /// How the steps of a bracket are made with this camera.
    static func neutral(_ bracket: PhotoBracket, _ now: DeviceSnapshot, of device: String) throws(BusError) -> Neutral {
        let map = now.cameraControls
        switch bracket {
        case .exposureDuration:
            guard case .number? = map.kind(.exposureDuration) else {
                throw unsupported(.exposureDuration, "exposure that can be set, for a bracket", now, device)
            }
            return Neutral()
        case .exposureBias:
            let values = now.values
            let isAutomatic = values[CameraControlName.exposureMode.rawValue] == "continuousAutoExposure"
            if isAutomatic, case .number? = map.kind(.exposureTargetBias) { return Neutral() }
            guard case .number? = map.kind(.exposureDuration),
                let duration = values[CameraControlName.exposureDuration.rawValue]?.double, duration > 0
            else { throw unsupported(.exposureTargetBias, "exposure that can be set, for a bracket", now, device) }
            return Neutral(duration: duration)
        }
    }

    /// What is to be set for a step.
    static func step(_ bracket: PhotoBracket, _ index: Int, _ neutral: Neutral) -> JSONValue {
        let controls: JSONValue =
            switch bracket {
            case .exposureDuration(let steps): ["exposureDuration": .number(Double(steps[index]) / 1e9)]
            case .exposureBias(let steps):
                if let duration = neutral.duration {
                    ["exposureDuration": .number(duration * exp2(steps[index]))]
                } else {
                    ["exposureTargetBias": .number(steps[index])]
                }
            }
        return ["controls": controls]
    }

    /// The bracket as the camera takes it.
    static func given(_ bracket: PhotoBracket, _ neutral: Neutral, _ map: CameraControlMap) -> PhotoBracket {
        func given(_ seconds: Double) -> Int64 {
            Int64(min(max((seconds * 1e9).rounded(), 1_000), 3_600_000_000_000))
        }
        // What a table has may lie beyond what can be said, and its logarithm is no number that is read easily.
        func given(bias: Double) -> Double { min(max((bias * 1000).rounded() / 1000, -20), 20) }
        func nearest(_ value: Double, _ name: CameraControlName) -> Double {
            guard case .number(let least, let most, let values)? = map.kind(name) else { return value }
            let clamped = min(max(value, least), most)
            return values.min { abs($0 - clamped) < abs($1 - clamped) } ?? clamped
        }
        switch bracket {
        case .exposureDuration(let steps):
            return .exposureDuration(steps.map { given(nearest(Double($0) / 1e9, .exposureDuration)) })
        case .exposureBias(let steps):
            guard let duration = neutral.duration else {
                return .exposureBias(steps.map { given(bias: nearest($0, .exposureTargetBias)) })
            }
            return .exposureBias(
                steps.map { given(bias: log2(nearest(duration * exp2($0), .exposureDuration) / duration)) })
        }
    }

    // nil: the format that is set is the one.
    private static func format(
        _ settings: PhotoSettings, _ now: DeviceSnapshot, of device: String
    ) throws(BusError) -> JSONValue? {
        let promised = now.description.formats.first { $0.id == now.configuration.formatID }?.traits
            .highResolutionStillImageDimensions
        let stills = now.description.stillFormats.filter { $0.dimensions == promised }
        let sizes = StillSizes(
            of: now.description.formats + stills, present: now.configuration.format,
            frameDuration: now.configuration.frameDuration, for: settings)
        guard let choice = sizes.largest(within: settings.maxDimensions) else {
            // Where no size can be had either, the format is refused.
            guard let limit = settings.maxDimensions, let smallest = sizes.all.first else { return nil }
            let listed = sizes.all.map(\.description).joined(separator: ", ")
            throw BusError(
                .formatUnsupported, "\(device) gives no photo within \(limit) now; its sizes are \(listed).",
                [
                    "device": .string(device), "nearest": smallest.json,
                    "supportedMaxPhotoDimensions": .array(sizes.all.map(\.json)),
                ])
        }
        return sizes.isPresent(choice) ? nil : choice.json
    }

    private static func unsupported(
        _ name: CameraControlName, _ what: String, _ now: DeviceSnapshot, _ device: String
    ) -> BusError {
        let supported = now.cameraControls.controls.filter { !$0.name.isReadOnly }.map(\.name.rawValue)
        return BusError(
            .controlUnsupported, "\(device) has no \(what); device.controls lists its controls.",
            [
                "device": .string(device), "control": .string(name.rawValue), "supported": JSONValue(supported),
            ])
    }
}
