import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import Glibc
import JSON
import LinuxIO

/// What is known of how a frame was taken, for its photo.
struct PhotoFactsReader {
    /// How the device was when the frame was taken; nil: nobody knows.
    let snapshot: DeviceSnapshot?
    /// What the frame was asked to be brighter than metered, in doublings of light, where that isn't in a control.
    var bias: Double?
    /// nil: there was nothing to fire.
    var flashFired: Bool?
    var redEyeReduction = false

    private let values: [String: JSONValue]
    private let isPast: Bool

    /// - Parameter isPast: the frame is of a moment that is over: how the device was set then isn't known any more.
    init(_ snapshot: DeviceSnapshot?, isPast: Bool = false) {
        self.snapshot = snapshot
        self.isPast = isPast
        values = isPast ? [:] : snapshot?.values ?? [:]
    }

    /// nil: nothing is known.
    var exposure: PhotoResult.Exposure? {
        let exposure = PhotoResult.Exposure(duration: duration, iso: iso, bias: bias ?? number(.exposureTargetBias))
        return exposure == PhotoResult.Exposure() ? nil : exposure
    }

    /// - Parameter frame: what its header says.
    func facts(_ frame: FrameFacts) -> PhotoFacts {
        let identity = snapshot?.description.identity
        let zoom = number(.videoZoomFactor) ?? (Double(frame.zoom) / Double(DigitalZoom.whole))
        let exposureMode = values[CameraControlName.exposureMode.rawValue]?.string
        let balanceMode = values[CameraControlName.whiteBalanceMode.rawValue]?.string
        return PhotoFacts(
            uniqueID: hexadecimal(randomBytes(16)), realtime: frame.realtime,
            utcOffset: Self.utcOffset(at: frame.realtime),
            make: identity?.type == .virtual ? "CameraBus" : nil, model: identity?.localizedName, software: "CameraBus",
            exposureDuration: duration, iso: iso.map { Int($0.rounded()) }, exposureBias: exposure?.bias,
            focalLength35: focalLength35(zoom), flashFired: flashFired ?? (hasFlash && !isPast ? false : nil),
            hasFlash: hasFlash,
            redEyeReduction: redEyeReduction, isExposureManual: exposureMode.map { $0 == "custom" },
            isWhiteBalanceManual: balanceMode.map { $0 == "locked" }, meteringMode: meteringMode,
            zoom: zoom > 1 ? zoom : nil)
    }

    private var hasFlash: Bool { snapshot?.cameraControls.kind(.flashMode) != nil }

    private var duration: Int64? {
        number(.exposureDuration).flatMap { $0 > 0 && $0 < 1e6 ? Int64(($0 * 1e9).rounded()) : nil }
    }

    private var iso: Double? { number(.iso).flatMap { $0 > 0 && $0 < 1e9 ? $0 : nil } }

    private var meteringMode: PhotoFacts.MeteringMode? {
        guard let point = values[CameraControlName.exposurePointOfInterest.rawValue], let x = point["x"]?.double,
            let y = point["y"]?.double
        else { return nil }
        return x == 0.5 && y == 0.5 ? .average : .spot
    }

    // That of a picture 36 mm wide which shows as much.
    private func focalLength35(_ zoom: Double) -> Double? {
        guard let now = snapshot,
            let angle = now.description.formats.first(where: { $0.id == now.configuration.formatID })?.traits
                .videoFieldOfView, angle > 0, angle < 180
        else { return nil }
        return 18 / tan(angle / 2 * .pi / 180) * max(1, zoom)
    }

    private func number(_ name: CameraControlName) -> Double? {
        values[name.rawValue]?.double.flatMap { $0.isFinite ? $0 : nil }
    }

    /// Seconds by which the local time is ahead of UTC then.
    private static func utcOffset(at realtime: Int64) -> Int {
        var time = time_t(realtime / 1_000_000_000)
        var parts = tm()
        return localtime_r(&time, &parts) == nil ? 0 : parts.tm_gmtoff
    }
}
