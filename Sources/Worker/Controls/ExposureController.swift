import BusServer
import CaptureCore
import CaptureSources
import Imaging
import LinuxIO
import Logging

/// Controls the exposure of a camera by the light around a point of its frames: the ``FrameMeter`` measures the frames,
/// ``ExposureServo`` decides what to set, and the device thread sets it.
///
/// ``ExposureMetering``'s controls hold the wanted mode, so this depends on the device's state alone.
final class ExposureController {
    private struct Task: Equatable {
        var region: MeteredRegion
        /// It goes on by itself.
        var isOn: Bool
        var bounds: ExposureServo.Bounds
        var bias: Double
        /// A frame's time, nanoseconds.
        var frame: Int64
        var revision: UInt64
    }

    private let loop: Loop
    private let thread: DeviceThread<CameraDevice>
    private let controller: CameraController
    private let meter: FrameMeter
    private let logger: Logger
    private var task: Task?
    private var servo: ExposureServo?
    /// A step, or the end, is being made on the device thread.
    private var isBusy = false
    private var isFailing = false
    private var watch: Loop.Token?

    /// The device is to stream, because the exposure is being adjusted.
    private(set) var wantsFrames = false
    /// Called when ``wantsFrames`` has changed.
    var onDemandChange: (() -> Void)?

    /// From one look to the next at a picture that is as it should be, nanoseconds.
    private static let pace: Int64 = 250_000_000
    /// The same where frames can't be measured or the driver refuses, nanoseconds.
    private static let longPace: Int64 = 5_000_000_000
    /// Frames that may still be of the setting before.
    private static let delay: Int64 = 3
    /// How long frames are waited for, nanoseconds; as many frames' time, if that is longer.
    private static let (patience, framesPatience): (Int64, Int64) = (5_000_000_000, 20)

    init(
        _ loop: Loop, _ thread: DeviceThread<CameraDevice>, _ controller: CameraController, _ meter: FrameMeter,
        logger: Logger
    ) {
        self.loop = loop
        self.thread = thread
        self.controller = controller
        self.meter = meter
        self.logger = logger
        meter.onLuma = { [weak self] in self?.metered($0) }
    }

    private var isAdjusting: Bool {
        controller.snapshot?.configuration.controls[ExposureMetering.isAdjusting]?.number == 1
    }

    /// To be called whenever something of the device has changed.
    func update() {
        let next = controller.snapshot.flatMap(Self.task)
        if next != task {
            task = next
            meter.stop()
            servo = next.map { ExposureServo($0.bounds, bias: $0.bias) }
            isFailing = false
            if let next, !isBusy { meter.ask(next.region, notBefore: MonotonicClock.now() + next.frame) }
            watchFrames()
        }
        let wants = task != nil && isAdjusting
        guard wants != wantsFrames else { return }
        wantsFrames = wants
        watchFrames()
        onDemandChange?()
    }

    /// nil: nothing is to be metered.
    private static func task(_ now: DeviceSnapshot) -> Task? {
        let values = now.configuration.controls
        guard let isOn = values[ExposureMetering.isOn]?.number, let x = values[ExposureMetering.pointX]?.number,
            let y = values[ExposureMetering.pointY]?.number,
            isOn != 0 || values[ExposureMetering.isAdjusting]?.number == 1
        else { return nil }
        let controls = now.description.controls
        if let mode = ExposureMetering.mode(controls), let value = values[mode.name],
            ExposureMetering.isAutomatic(mode, value)
        {
            return nil
        }
        guard let (time, gain) = ExposureMetering.driven(controls) else { return nil }
        let duration = now.configuration.frameDuration
        let frame = min(max((duration ?? .usual).nanoseconds, 1_000_000), 60_000_000_000)
        let share = Double(ExposureMetering.end)
        let map = now.cameraControls
        return Task(
            region: MeteredRegion(aroundX: Double(x) / share, y: Double(y) / share), isOn: isOn != 0,
            bounds: ExposureServo.Bounds(
                time: time, gain: gain, longest: map.longestExposure(within: duration, values)),
            bias: map.exposureTargetBias(values),
            frame: frame, revision: now.meteringRevision)
    }

    // MARK: From frame to frame

    private func metered(_ luma: Double?) {
        guard let task, !isBusy else { return }
        watchFrames()
        guard let luma, let setting = setting() else {
            if isAdjusting { end(task) }
            return ask(task, after: Self.longPace)
        }
        switch servo?.take(luma: luma, at: setting) {
        case .set(let setting)?: set(setting, task)
        case .wait?: ask(task, after: task.frame)
        case .settled?, nil:
            if isAdjusting { end(task) } else { ask(task, after: Self.pace) }
        }
    }

    private func ask(_ task: Task, after time: Int64) {
        meter.ask(task.region, notBefore: MonotonicClock.now() + time)
    }

    private func setting() -> ExposureServo.Setting? {
        guard let now = controller.snapshot, let (time, gain) = ExposureMetering.driven(now.description.controls),
            let value = now.configuration.controls[time.name]?.number
        else { return nil }
        return ExposureServo.Setting(time: value, gain: gain.flatMap { now.configuration.controls[$0.name]?.number })
    }

    private func set(_ setting: ExposureServo.Setting, _ task: Task) {
        guard let driven = controller.snapshot.flatMap({ ExposureMetering.driven($0.description.controls) }) else {
            return
        }
        isBusy = true
        thread.perform { camera throws(SourceError) in
            try camera.drive(driven, to: setting, revision: task.revision)
        } then: { [weak self] result in
            guard let self else { return }
            isBusy = false
            switch result {
            case .success(false): if let now = self.task { ask(now, after: now.frame) }
            case .success(true):
                isFailing = false
                var values: [String: ControlValue] = [
                    driven.time.name: .integer(setting.time), ExposureMetering.isAdjusting: .boolean(true),
                ]
                if let gain = driven.gain, let value = setting.gain { values[gain.name] = .integer(value) }
                controller.exposed(values)
                // Frames on their way are of the setting before.
                if let now = self.task { ask(now, after: Self.delay * now.frame) }
            case .failure(let error): failed(error)
            }
        }
    }

    private func failed(_ error: SourceError) {
        if !isFailing { logger.warning("the exposure can't be controlled", metadata: ["error": "\(error)"]) }
        isFailing = true
        guard let task else { return }
        if isAdjusting { end(task) }
        ask(task, after: Self.longPace)
    }

    /// It has come to its end, or is given up.
    private func end(_ task: Task) {
        guard !isBusy else { return }
        isBusy = true
        thread.perform { camera in
            (camera.endExposure(task.revision), camera.report())
        } then: { [weak self] (result: Result<(Bool, CameraDevice.Report), Never>) in
            guard let self else { return }
            isBusy = false
            let (hasEnded, report) = result.get()
            controller.exposureEnded(report)
            // A device that can't be read says nothing of it.
            if hasEnded, isAdjusting { controller.exposed([ExposureMetering.isAdjusting: .boolean(false)]) }
            guard let now = self.task else { return }
            ask(now, after: now == task ? (isFailing ? Self.longPace : Self.pace) : now.frame)
        }
    }

    /// Gives up what is waited for if no frame comes.
    private func watchFrames() {
        loop.cancel(watch)
        watch = nil
        guard let task, isAdjusting else { return }
        let time = MonotonicClock.now() + max(Self.patience, Self.framesPatience * task.frame)
        watch = loop.schedule(at: time) { [weak self] in
            guard let self else { return }
            watch = nil
            guard let now = self.task, isAdjusting else { return }
            logger.notice("no frame has come to meter the exposure by")
            end(now)
        }
    }
}
