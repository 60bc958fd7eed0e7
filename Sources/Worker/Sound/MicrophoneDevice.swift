import BusProtocol
import CaptureCore
import CaptureSources
import JSON
import LinuxIO

/// A microphone with its committed configuration. Used on the device thread only.
///
/// Another program may change a microphone while it is closed, so the committed configuration is restored at each
/// opening.
final class MicrophoneDevice {
    /// The state that the loop gets after each job.
    struct Report {
        var snapshot: SoundSnapshot?
        var generation: UInt64
        var committed: CommittedSound?
        /// What of ``committed`` it doesn't have.
        var notRestored: [NotRestored]
    }

    let source: any AudioSource
    private let device: String
    private var description: MicrophoneDescription?
    private var snapshot: SoundSnapshot?
    /// Rises with every change that was made by order, and with every one that was taken back.
    private(set) var generation: UInt64
    /// nil: nothing was ever set by order.
    private(set) var committed: CommittedSound?
    private var notRestored: [NotRestored] = []

    init(_ source: any AudioSource, device: String, committed: CommittedSound?) {
        self.source = source
        self.device = device
        self.committed = committed
        generation = committed?.generation ?? 0
    }

    var report: Report {
        Report(snapshot: snapshot, generation: generation, committed: committed, notRestored: notRestored)
    }

    // MARK: Opening

    /// Opens the microphone, restores the committed configuration, and returns the queue of its events.
    func open() throws(SourceError) -> (any DeviceEventQueue)? {
        description = try source.open()
        do {
            let events = try source.events()
            try restore()
            return events
        } catch {
            source.close()
            throw error
        }
    }

    func close() {
        source.close()
        // An unused microphone must cost no memory.
        ProcessMemory.giveBack()
    }

    func start() throws(SourceError) -> any SoundStream {
        if let format = committed?.format, try !source.activeFormat().isSame(as: format) { try restore() }
        return try source.startCapture()
    }

    func stop() throws(SourceError) { try source.stopCapture() }

    // MARK: Reading and putting back

    /// How the open microphone is set now.
    @discardableResult
    func read() throws(SourceError) -> SoundSnapshot {
        let controls = try source.controls()
        description?.controls = controls
        let description =
            description ?? MicrophoneDescription(identity: source.identity, formats: [], controls: controls)
        let configuration = SoundConfiguration(
            format: try source.activeFormat(), controls: try source.controlValues())
        let snapshot = SoundSnapshot(
            description: description, configuration: configuration, asOf: MonotonicClock.now())
        self.snapshot = snapshot
        return snapshot
    }

    // A value that cannot be restored is reported, and does not stop anything else.
    private func restore() throws(SourceError) {
        notRestored = []
        guard let committed else {
            try read()
            return
        }
        if let wanted = committed.format, try !source.activeFormat().isSame(as: wanted) {
            do throws(SourceError) {
                let given = try source.setFormat(wanted)
                if !given.isSame(as: wanted) { missed(wanted, given, "the device takes \(given.words)") }
            } catch {
                if error.kind == .disconnected { throw error }
                missed(wanted, try source.activeFormat(), "\(error)")
            }
        }
        let values = try source.controlValues()
        for control in committed.controls where values[control.name] != control.value {
            do throws(SourceError) {
                try source.setControl(control.name, to: control.value)
            } catch {
                if error.kind == .disconnected { throw error }
                notRestored.append(
                    NotRestored(
                        path: NotRestored.path(ofControl: control.name), wanted: control.value.json,
                        present: values[control.name]?.json ?? .null, why: "\(error)"))
            }
        }
        try read()
    }

    private func missed(_ wanted: SoundFormat, _ present: SoundFormat, _ why: String) {
        notRestored.append(
            NotRestored(
                path: "activeFormat", wanted: wanted.json(id: nil), present: present.json(id: nil), why: why))
    }

    // MARK: Changes

    /// Checks a change against the open microphone, without changing it.
    func prepare(
        _ change: ConfigurationChange, path: String, mode: ConfigurationMode
    ) throws(BusError) -> PreparedSound {
        let now = try translating { () throws(SourceError) in try read() }
        var plan = try SoundPlanner(description: now.description).plan(
            change, path: path, current: now.configuration, mode: mode)
        if let wanted = plan.format, wanted != now.configuration.format {
            let given = try translating { () throws(SourceError) in try source.tryFormat(wanted) }
            try accept(given, for: wanted, mode, path, now.description, &plan)
            plan.format = given
        }
        var outcome = now
        if let format = plan.format { outcome.configuration.format = format }
        for control in plan.controls { outcome.configuration.controls[control.name] = control.value }
        return PreparedSound(plan: plan, outcome: outcome)
    }

    /// Makes a change and reads back what became of it. If it can't be made, the microphone is as it was before.
    func apply(_ change: PreparedSound) throws(BusError) -> AppliedSound {
        let before = try translating { () throws(SourceError) in try read() }
        do {
            if let wanted = change.plan.format, wanted != before.configuration.format {
                _ = try translating { () throws(SourceError) in try source.setFormat(wanted) }
            }
            for control in change.plan.controls {
                try translating { () throws(SourceError) in
                    try source.setControl(control.name, to: control.value)
                }
            }
            let now = try translating { () throws(SourceError) in try read() }
            generation += 1
            let committedBefore = committed
            committed = (committed ?? CommittedSound(generation: generation)).changed(
                by: change.plan, generation: generation, to: now.configuration)
            forget(change.plan)
            return AppliedSound(
                plan: change.plan, generation: generation, now: now, before: before.configuration,
                committedBefore: committedBefore)
        } catch {
            var error = error
            if let left = putBack(before.configuration, undoing: change.plan) {
                error.message += " The device could not be restored: \(left)"
                error.data["notRolledBack"] = true
            }
            throw error
        }
    }

    /// Takes back what a change has committed; the microphone need not be open.
    func revoke(_ change: AppliedSound) {
        generation += 1
        committed = change.committedBefore ?? CommittedSound(generation: generation)
        committed?.generation = generation
        forget(change.plan)
    }

    /// Takes back what a change has set at the microphone, after ``revoke(_:)``.
    func rollBack(_ change: AppliedSound) throws(BusError) -> SoundSnapshot {
        if let left = putBack(change.before, undoing: change.plan) {
            throw BusError(.internalError, "\(device) could not be restored: \(left)", ["device": .string(device)])
        }
        return try translating { () throws(SourceError) in try read() }
    }

    // Answers what went wrong, if so.
    private func putBack(_ before: SoundConfiguration, undoing plan: SoundPlan) -> SourceError? {
        var failure: SourceError?
        do throws(SourceError) {
            if plan.format != nil, try source.activeFormat() != before.format {
                _ = try source.setFormat(before.format)
            }
        } catch {
            failure = error
        }
        for control in plan.controls {
            guard let value = before.controls[control.name] else { continue }
            do throws(SourceError) {
                try source.setControl(control.name, to: value)
            } catch {
                failure = failure ?? error
            }
        }
        _ = try? read()
        return failure
    }

    // What is asked for anew is not missed any more.
    private func forget(_ plan: SoundPlan) {
        notRestored.removeAll { entry in
            entry.path == "activeFormat"
                ? plan.format != nil
                : plan.controls.contains { NotRestored.path(ofControl: $0.name) == entry.path }
        }
    }

    private func accept(
        _ given: SoundFormat, for wanted: SoundFormat, _ mode: ConfigurationMode, _ path: String,
        _ description: MicrophoneDescription, _ plan: inout SoundPlan
    ) throws(BusError) {
        guard !given.isSame(as: wanted) else { return }
        let nearest = given.json(id: description.formatID(of: given))
        let why = "\(device) takes \(given.words) instead of \(wanted.words)."
        guard mode == .nearest else { throw BusError(.formatUnsupported, why, ["nearest": nearest]) }
        plan.adjustments.append(
            Adjustment(
                path: ConfigurationChange.path(of: "activeFormat", in: path), asked: wanted.json(id: nil),
                given: nearest, why: why))
    }

    private func translating<Value>(_ body: () throws(SourceError) -> Value) throws(BusError) -> Value {
        do throws(SourceError) {
            return try body()
        } catch {
            throw BusError(error, device: device)
        }
    }
}
