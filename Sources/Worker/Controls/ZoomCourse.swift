import CaptureCore

/// A zoom ramp that the device is to go through.
struct ZoomCourse: Hashable, Sendable {
    var ramp: ZoomRamp
    var map: ZoomScale
    /// From one step to the next, nanoseconds.
    var pace: Int64
    /// Of the change that it is.
    var generation: UInt64

    var ramping: RampingZoom { RampingZoom(control: map.control.name, generation: generation) }
}

/// The zoom ramp that a device goes through.
struct RampingZoom: Hashable, Sendable {
    /// The control that it moves.
    var control: String
    /// Of the change that it is: another one may begin while what ends this one is on its way.
    var generation: UInt64
}

/// The control that a ramp moves, and its units.
struct ZoomScale: Hashable, Sendable {
    var control: CaptureControl

    /// The control's value that comes nearest to a factor.
    func value(_ factor: Double) -> Int64 {
        CameraControlMap(controls: [control]).zoomSetting(factor)?.value ?? control.minimum
    }
}
