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
        if settings.highResolution, let largest = largest(settings, now) {
            members["activeFormat"] = .string(largest.id)
        }
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

    // nil: the format that is set is as large as any.
    private static func largest(_ settings: PhotoSettings, _ now: DeviceSnapshot) -> CaptureFormat? {
        let present = now.configuration.format
        let promised = now.description.formats.first { $0.id == now.configuration.formatID }?.traits
            .highResolutionStillImageDimensions
        let stills = now.description.stillFormats.filter { $0.dimensions == promised }
        let fitting = (now.description.formats + stills).filter { format in
            if let duration = now.configuration.frameDuration, !format.has(duration) { return false }
            let available = PhotoEncoder.available(for: format.pixelFormat)
            if settings.withRaw, available.raw.isEmpty { return false }
            return switch settings.format {
            case .dng?: !available.raw.isEmpty
            case let wanted?: available.codecs.contains(wanted)
            case nil: !available.codecs.isEmpty
            }
        }
        let largest = fitting.map(\.dimensions.area).max() ?? 0
        guard largest > present.dimensions.area else { return nil }
        let rows = fitting.filter { $0.dimensions.area == largest }
        return rows.first { $0.pixelFormat == present.pixelFormat } ?? rows.first
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

extension CaptureFormat {
    /// It can be had at that rate, as far as the camera says what it can.
    fileprivate func has(_ duration: FrameDuration) -> Bool {
        let nearly = 0.0001
        return frameRates.isEmpty
            || frameRates.contains { range in
                duration.seconds > range.minFrameDuration.seconds * (1 - nearly)
                    && duration.seconds < range.maxFrameDuration.seconds * (1 + nearly)
            }
    }
}
