import BusProtocol
import CaptureCore
import CaptureSources
import JSON
import LinuxIO

extension CameraDevice {
    /// V4L2_CID_FLASH_STROBE
    private static var strobe: UInt32 { 0x009C_0903 }

    /// Checks what a photo needs of the device, without changing it.
    func prepare(_ wish: JSONValue?) throws(BusError) -> PreparedChange? {
        guard var members = wish?.object else { return nil }
        members["device"] = .string(device)
        return try prepare(.object(members), path: "settings", mode: .nearest, isStandIn: true)
    }

    /// The present state of the device, for the choice of settings.
    func look() throws(BusError) -> DeviceSnapshot { try translating { () throws(SourceError) in try read() } }

    /// Sets something for a photo, in addition to what was set for it before. On failure the device is as before the
    /// call.
    func standIn(_ change: PreparedChange) throws(BusError) -> DeviceSnapshot {
        let before = try translating { () throws(SourceError) in try read() }
        let known = standIn
        do {
            var adjustments: [Adjustment] = []
            // Meanwhile nothing restores what it changes.
            standIn = StandIn(change.plan, before: before.configuration, beside: known)
            isStandInLeft = false
            try setFormat(change, before, &adjustments)
            try setControls(change, before)
            let now = try translating { () throws(SourceError) in try read() }
            if now.configuration.format != before.configuration.format { raiseGeneration() }
            return now
        } catch {
            // What could not be put back is left, as at the end of a photo.
            isStandInLeft = putBack(before.configuration, undoing: change.plan) != nil
            if !isStandInLeft { standIn = known }
            throw error
        }
    }

    /// Puts back what was set for a photo. Harmless when nothing is.
    ///
    /// - Throws: what is left then is put back at the next photo's end, the next start of the stream or the next
    ///   opening.
    func endStandIn() throws(BusError) {
        guard let standIn else { return }
        let left = putBack(standIn.before, undoing: standIn.plan)
        if standIn.setsFormat { raiseGeneration() }
        if let left {
            isStandInLeft = true
            throw BusError(.internalError, "\(device) could not be restored: \(left)", ["device": .string(device)])
        }
        self.standIn = nil
        // What it was called while it stood in ends with it.
        snapshot?.configuration.words = committed?.words ?? [:]
    }

    /// Tries once more to put back what could not be when its photo was over; then what is committed counts.
    func endLeftStandIn() {
        if isStandInLeft { endStandInAnyway() }
    }

    /// The device was opened anew: what was set for a photo, by this process or one before it, may be set still.
    func endStandInAtOpening() { endStandInAnyway() }

    private func endStandInAnyway() {
        guard let standIn else { return }
        self.standIn = nil
        isStandInLeft = false
        _ = putBack(standIn.before, undoing: standIn.plan)
    }

    /// Fires the flash, where that has to be asked for.
    ///
    /// - Returns: when that was done: monotonic nanoseconds.
    func fireFlash() throws(BusError) -> Instant {
        if let button = description?.controls.first(where: { $0.id == Self.strobe && $0.type == .button }) {
            try translating { () throws(SourceError) in try source.setControl(button.name, to: .boolean(true)) }
        }
        return MonotonicClock.now()
    }

    // Readers see that frames are of another format; what is committed stays.
    private func raiseGeneration() {
        generation += 1
        committed?.generation = generation
    }
}

extension DeviceSnapshot {
    /// The driver itself says when its exposure is there.
    var tellsExposure: Bool {
        description.controls.contains {
            $0.name == ExposureMetering.isAdjusting && $0.category != ExposureMetering.category
        }
    }

    /// Exposure, focus or white balance is adjusting, according to the camera or the software that drives it.
    var isAdjusting: Bool {
        let values = values
        return [CameraControlName.adjustingExposure, .adjustingFocus, .adjustingWhiteBalance].contains {
            values[$0.rawValue] == true
        }
    }
}
