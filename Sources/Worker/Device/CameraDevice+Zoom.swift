import BusProtocol
import CaptureCore
import CaptureSources
import JSON
import LinuxIO

extension CameraDevice {
    /// Begins a ramp; what is committed is its end. One that runs is replaced, from where it is.
    ///
    /// - Throws: `controlUnsupported`, `controlOutOfRange`
    func beginZoom(_ wish: ZoomRequest, at time: Instant) throws(BusError) -> ZoomCourse {
        let now = try readForZoom()
        let map = now.cameraControls
        guard let control = map.zoom, let from = map.zoomFactor(now.configuration.controls),
            map.kind(.videoZoomFactor) != nil
        else {
            let supported = map.controls.filter { !$0.name.isReadOnly }.map(\.name.rawValue)
            throw BusError(
                .controlUnsupported, "\(device) has no zoom; device.controls lists its controls.",
                ["control": "videoZoomFactor", "supported": JSONValue(supported)])
        }
        let to = wish.factor(map)
        guard to >= 1, to <= map.videoMaxZoomFactor + 1e-9 else {
            throw BusError(
                .controlOutOfRange,
                "\(device) can't be zoomed to \(to); it takes 1 to \(map.videoMaxZoomFactor) in this format.",
                [
                    "device": .string(device), "control": "videoZoomFactor", "min": 1,
                    "max": JSONValue(map.videoMaxZoomFactor), "step": 0,
                ])
        }
        let scale = ZoomScale(control: control)
        let before = rampingZoom
        rampingZoom = RampingZoom(control: control.name, generation: generation + 1)
        do throws(BusError) {
            try readForZoom()
        } catch {
            // It has not begun; a ramp that runs continues.
            rampingZoom = before
            throw error
        }
        generation += 1
        commitZoom(control.name, .integer(scale.value(to)), now)
        let pace = (now.configuration.frameDuration ?? .usual).nanoseconds
        return ZoomCourse(
            ramp: ZoomRamp(from: from, to: to, rate: wish.rate, start: time), map: scale,
            // A camera that takes a picture a minute zooms smoothly all the same, and none is asked more often than it
            // can show.
            pace: min(max(pace, 4_000_000), 100_000_000), generation: generation)
    }

    /// One step of a ramp.
    ///
    /// - Returns: false: it runs no more, and nothing is done.
    func stepZoom(_ ramp: RampingZoom, to value: Int64) throws(SourceError) -> Bool {
        guard rampingZoom == ramp else { return false }
        try source.setControl(ramp.control, to: .integer(value))
        return true
    }

    /// The ramp is over: what is committed is where the zoom is now. Harmless when it runs no more.
    func endZoom(_ ramp: RampingZoom) {
        guard rampingZoom == ramp else { return }
        rampingZoom = nil
        guard let now = try? read(), let value = now.configuration.controls[ramp.control] else { return }
        commitZoom(ramp.control, value, now)
    }

    private func commitZoom(_ name: String, _ value: ControlValue, _ now: DeviceSnapshot) {
        let known =
            committed
            ?? CommittedConfiguration(
                generation: generation, format: now.configuration.format,
                frameDuration: now.configuration.frameDuration, controls: [])
        committed = known.setting(name, to: value)
        committed?.generation = generation
    }

    @discardableResult
    private func readForZoom() throws(BusError) -> DeviceSnapshot {
        do throws(SourceError) { return try read() } catch {
            throw BusError(error, device: device, description: description)
        }
    }
}
