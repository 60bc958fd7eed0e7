import CaptureCore
import CaptureSources
import Logging

/// The device's state as the loop knows it: the last snapshot, with the events since then.
final class DeviceCache {
    /// nil before it was opened for the first time.
    private(set) var snapshot: DeviceSnapshot?
    /// nil: the device is closed.
    private(set) var priority: KernelPriority?
    /// What of the last committed configuration the device doesn't have.
    private(set) var notRestored: [NotRestored] = []
    /// What is set for a photo; nil: nothing.
    var standIn: StandIn?

    /// Called for every change of controls, when ``snapshot`` contains it.
    var onNews: ((ControlChanges, ControlCause) -> Void)?

    private let logger: Logger
    private var committed: Set<String> = []
    // The last event of each control: a snapshot that was read at the same time may not contain it.
    private var lastValues: [UInt32: ControlEvent] = [:]
    private var lastFlags: [UInt32: ControlEvent] = [:]

    /// The last published state of a zoom ramp, and its time.
    private var zoomPublished: (snapshot: DeviceSnapshot, time: Int64)?

    /// From one word of a zoom ramp to the next, nanoseconds.
    private static let zoomPeriod: Int64 = 100_000_000

    init(logger: Logger) { self.logger = logger }

    /// Takes the report of a job on the device thread.
    ///
    /// - Parameter configured: the controls that were set by order.
    func take(_ report: CameraDevice.Report, configured: Set<String> = []) {
        priority = report.priority
        standIn = report.standIn
        committed = Set(report.committed?.controls.map(\.name) ?? [])
        logNotRestored(report.notRestored)
        // Nothing was read, or this is what was read before the newest.
        guard let new = report.snapshot, new.began > snapshot?.began ?? .min else { return }
        lastValues = lastValues.filter { $0.value.time >= new.began }
        lastFlags = lastFlags.filter { $0.value.time >= new.began }
        learn(new.changed(by: Array(lastValues.values) + lastFlags.values) ?? new, configured, report.found)
    }

    /// The device is closed.
    func closed() { priority = nil }

    /// Format, rate and what is stated of the pictures are settled: some drivers do that only when they stream.
    ///
    /// - Parameter dimensions: of the format, which its pictures may not have.
    func streams(_ description: FormatDescription, as dimensions: Dimensions, _ duration: FrameDuration?) {
        snapshot?.formatDescription = description
        var format = FormatSelection(pixelFormat: description.pixelFormat, dimensions: dimensions)
        // Frames do not show which of several such rows it is.
        if let present = snapshot?.configuration.format, present.pixelFormat == format.pixelFormat,
            present.dimensions == format.dimensions
        {
            format = present
        }
        let formatID = snapshot?.description.formatID(of: format)
        snapshot?.configuration.format = format
        snapshot?.configuration.formatID = formatID
        if let duration { snapshot?.configuration.frameDuration = duration }
    }

    /// A zoom ramp has reached this value.
    func zoomed(_ name: String, _ value: Int64, at time: Int64) {
        guard var now = snapshot, now.configuration.isRampingZoom else { return }
        let published = zoomPublished ?? (snapshot: now, time: now.asOf)
        now.configuration.controls[name] = .integer(value)
        now.asOf = time
        snapshot = now
        zoomPublished = published
        guard time - published.time >= Self.zoomPeriod else { return }
        zoomPublished = (now, time)
        let news = ControlChanges(from: published.snapshot, to: now)
        if !news.isEmpty { onNews?(news, .configured) }
    }

    /// Controls that are moved from here, as a camera moves its own, have come so far.
    func moved(_ values: [String: ControlValue], at time: Int64) {
        guard let old = snapshot else { return }
        var new = old
        new.configuration.controls.merge(values) { $1 }
        new.asOf = time
        snapshot = new
        let news = ControlChanges(from: old, to: new)
        if !news.isEmpty { onNews?(news, .external) }
    }

    /// The ramp has ended: what was not published of it is published with the next snapshot.
    func endZoom(_ name: String) {
        guard let published = zoomPublished else { return }
        zoomPublished = nil
        snapshot?.configuration.controls[name] = published.snapshot.configuration.controls[name]
    }

    /// The camera changes the control with this id by itself: it cannot be set, or not while an automatic mode governs
    /// it.
    func movesByItself(_ id: UInt32) -> Bool {
        guard let control = snapshot?.description.controls.first(where: { $0.id == id }) else { return false }
        return !control.flags.isDisjoint(with: [.readOnly, .volatile, .inactive])
    }

    /// Takes events of the device.
    ///
    /// - Returns: `isIncomplete`: the device has to be read. `isMeddling`: another program has changed a committed
    ///   control.
    func take(_ events: [ControlEvent]) -> (isIncomplete: Bool, isMeddling: Bool) {
        guard let snapshot else { return (false, false) }
        for event in events where !event.mustBeRead {
            if event.value != nil { lastValues[event.id] = event.valueOnly }
            if event.flags != nil { lastFlags[event.id] = event.flagsOnly }
        }
        let whole = events.filter { !$0.mustBeRead }
        guard let new = snapshot.changed(by: whole) else { return (true, false) }
        let news = ControlChanges(from: snapshot, to: new)
        self.snapshot = new
        if !news.isEmpty { onNews?(news, .external) }
        return (whole.count < events.count, !committed.isDisjoint(with: news.values.keys))
    }

    private func learn(_ new: DeviceSnapshot, _ configured: Set<String>, _ found: [String: ControlValue]) {
        let old = snapshot
        snapshot = new
        var (ours, restored) = (ControlChanges(), ControlChanges())
        var others = old.map { ControlChanges(from: $0, to: new) } ?? ControlChanges()
        for name in configured { ours.values[name] = others.values.removeValue(forKey: name) }
        // The found values were never published as the device's state: they changed between two snapshots.
        for (name, value) in found {
            others.values[name] = nil
            restored.values[name] = (value.json, new.configuration.controls[name]?.json)
        }
        // What a camera control is made of has changed it.
        for control in others.values.isEmpty ? [] : new.cameraControls.controls {
            let name = control.name.rawValue
            guard others.values[name] != nil, !configured.isDisjoint(with: control.sources) else { continue }
            ours.values[name] = others.values.removeValue(forKey: name)
        }
        if !configured.isEmpty { swap(&ours.described, &others.described) }
        for (news, cause) in [(others, ControlCause.external), (restored, .restored), (ours, .configured)]
        where !news.isEmpty { onNews?(news, cause) }
    }

    // Once when it begins, and once when it is over.
    private func logNotRestored(_ now: [NotRestored]) {
        guard now != notRestored else { return }
        let before = notRestored
        notRestored = now
        for entry in now where !before.contains(where: { $0.path == entry.path && $0.why == entry.why }) {
            logger.warning(
                "not as it was last set",
                metadata: [
                    "what": "\(entry.path)", "wanted": "\(entry.wanted)", "is": "\(entry.present)",
                    "why": "\(entry.why)",
                ])
        }
        if now.isEmpty { logger.notice("as it was last set again") }
    }
}

extension ControlEvent {
    fileprivate var valueOnly: ControlEvent { ControlEvent(id: id, value: value, time: time) }
    fileprivate var flagsOnly: ControlEvent { ControlEvent(id: id, flags: flags, time: time) }
}
