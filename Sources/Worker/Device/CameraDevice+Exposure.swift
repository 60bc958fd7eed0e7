import CaptureCore
import CaptureSources

extension CameraDevice {
    /// One step of an exposure that is driven.
    ///
    /// - Returns: false: something else was asked meanwhile, and nothing is done.
    func drive(
        _ controls: (time: CaptureControl, gain: CaptureControl?), to setting: ExposureServo.Setting,
        revision: UInt64
    ) throws(SourceError) -> Bool {
        guard metering.revision == revision else { return false }
        try source.setControl(controls.time.name, to: .integer(setting.time))
        if let gain = controls.gain, let value = setting.gain { try source.setControl(gain.name, to: .integer(value)) }
        metering.isAdjusting = true
        return true
    }

    /// The exposure has settled. The result is committed if the exposure stays locked.
    ///
    /// - Returns: false: it was to begin anew meanwhile.
    func endExposure(_ revision: UInt64) -> Bool {
        guard metering.revision == revision else { return false }
        metering.isAdjusting = false
        guard let now = try? read(), !metering.isOn, let known = committed else { return true }
        committed = known.withExposure(of: now)
        return true
    }

    /// What is committed with a change that keeps the exposure as it is, which then is a value like any other.
    func withExposure(
        _ changed: CommittedConfiguration, _ plan: ConfigurationPlan, _ now: DeviceSnapshot
    ) -> CommittedConfiguration {
        let mode = CameraControlName.exposureMode.rawValue
        guard metering.isThere, plan.words[mode] == "locked" else { return changed }
        return changed.withExposure(of: now)
    }

    /// The controls that are on their way now to what isn't known yet.
    var drivenControls: Set<String> {
        guard metering.isAdjusting, let driven = snapshot.flatMap({ ExposureMetering.driven($0.description.controls) })
        else { return [] }
        return Set([driven.time.name] + (driven.gain.map { [$0.name] } ?? []))
    }
}

extension CommittedConfiguration {
    fileprivate func withExposure(of now: DeviceSnapshot) -> Self {
        guard let (time, gain) = ExposureMetering.driven(now.description.controls) else { return self }
        var kept = self
        for control in [time] + (gain.map { [$0] } ?? []) {
            guard let value = now.configuration.controls[control.name] else { continue }
            kept = kept.setting(control.name, to: value)
        }
        return kept
    }
}
