import CaptureCore
import CaptureSources
import JSON
import LinuxIO

/// Something of the last committed configuration that the device doesn't have.
struct NotRestored: Hashable, Sendable {
    /// `activeFormat`, `frameRate`, or `controls.` and the control's name.
    var path: String
    var wanted: JSONValue
    /// null: it can't be read, or isn't there.
    var present: JSONValue
    /// One sentence for people.
    var why: String

    /// {path, wanted, is, why}
    var json: JSONValue {
        ["path": .string(path), "wanted": wanted, "is": present, "why": .string(why)]
    }

    static func path(ofControl name: String) -> String { "controls.\(name)" }

    /// Of the format or its rate, not of a control.
    var isOfFormat: Bool { path == "activeFormat" || path == "frameRate" }

    /// The device has it after all.
    func isSettled(_ now: DeviceSnapshot) -> Bool {
        switch path {
        case "activeFormat": return now.configuration.format.json == wanted
        case "frameRate":
            guard let present = now.configuration.frameDuration else { return wanted.isNull }
            guard let wanted = try? FrameDuration(json: wanted, path: path) else { return false }
            return present.isNearly(wanted)
        default:
            let control = now.configuration.controls.first { Self.path(ofControl: $0.key) == path }
            return control?.value.json == wanted
        }
    }
}

/// Puts a committed configuration back into an open device that is set otherwise, and says what it could not.
///
/// In the order in which things depend on each other: the format, its rate, automatic modes, then the values that those
/// leave free. What counts is what the device says in the end: a refusal on the way is the reason of a difference only.
final class ConfigurationRestorer {
    private let source: any VideoSource
    private let committed: CommittedConfiguration
    private let read: () throws(SourceError) -> DeviceSnapshot
    private var refusals: [String: String] = [:]
    private var isInUse = false
    private var attempted: Set<String> = []

    /// What there is to be done, of what was committed.
    struct Scope: OptionSet {
        let rawValue: Int
        /// Format and rate: not while the device streams.
        static let format = Scope(rawValue: 1)
        static let controls = Scope(rawValue: 2)
    }

    struct Outcome {
        /// How the device is in the end.
        var snapshot: DeviceSnapshot
        var notRestored: [NotRestored]
        /// The controls that were put back, with the values that were found.
        var found: [String: ControlValue]
        /// The controls that were set, whether they took the value or not.
        var attempted: Set<String>
        /// The device is used, as its driver says, and has another format or rate than the committed ones therefore.
        var isFormatInUse: Bool
    }

    init(
        _ source: any VideoSource, _ committed: CommittedConfiguration,
        read: @escaping () throws(SourceError) -> DeviceSnapshot
    ) {
        self.source = source
        self.committed = committed
        self.read = read
    }

    /// - Parameter spared: controls that are left as they are.
    /// - Throws: only when the device is gone or can't even be read.
    func restore(_ scope: Scope, sparing spared: Set<String> = []) throws(SourceError) -> Outcome {
        let first = try read()
        var now = first
        var changed = false
        if scope.contains(.format) { changed = try restoreFormat(now.configuration) }
        if scope.contains(.controls) {
            // Some cameras forget a value while another is set, or with the format: what is wrong after the first round
            // gets a second.
            for _ in 0..<2 {
                if changed { now = try read() }
                changed = try restoreControls(&now, spared)
                if !changed { break }
            }
        }
        if changed { now = try read() }
        var notRestored = scope.contains(.format) ? formatDifferences(now) : []
        if scope.contains(.controls) { notRestored += controlDifferences(now, spared) }
        var found: [String: ControlValue] = [:]
        for (control, wanted) in self.wanted(now).present {
            guard let before = first.configuration.controls[control.name], !before.means(wanted),
                let after = now.configuration.controls[control.name], after.means(wanted)
            else { continue }
            found[control.name] = before
        }
        return Outcome(
            snapshot: now, notRestored: notRestored, found: found, attempted: attempted,
            isFormatInUse: isInUse && notRestored.contains(where: \.isOfFormat))
    }

    // MARK: Format and rate

    /// - Returns: whether anything was set.
    private func restoreFormat(_ now: DeviceConfiguration) throws(SourceError) -> Bool {
        var changed = false
        if now.format != committed.format {
            changed = true
            try attempt("activeFormat") { source throws(SourceError) in _ = try source.setFormat(committed.format) }
        }
        guard let duration = committed.frameDuration else { return changed }
        let present = changed ? try source.frameDuration() : now.frameDuration
        if let present, present.isNearly(duration) { return changed }
        try attempt("frameRate") { source throws(SourceError) in _ = try source.setFrameDuration(duration) }
        return true
    }

    private func formatDifferences(_ now: DeviceSnapshot) -> [NotRestored] {
        let configuration = now.configuration
        var differences: [NotRestored] = []
        if configuration.format != committed.format {
            differences.append(
                NotRestored(
                    path: "activeFormat", wanted: committed.format.json, present: configuration.format.json,
                    why: refusals["activeFormat"] ?? "The device chose another format."))
        }
        if let wanted = committed.frameDuration, !(configuration.frameDuration?.isNearly(wanted) ?? false) {
            differences.append(
                NotRestored(
                    path: "frameRate", wanted: wanted.json, present: configuration.frameDuration?.json ?? .null,
                    why: refusals["frameRate"] ?? "The device chose another frame rate."))
        }
        return differences
    }

    // MARK: Controls

    /// The committed values of those controls that the device has, modes first, and the names of those that it hasn't.
    private func wanted(
        _ now: DeviceSnapshot
    ) -> (present: [(control: CaptureControl, value: ControlValue)], missing: [PlannedControl]) {
        var present: [(control: CaptureControl, value: ControlValue)] = []
        var missing: [PlannedControl] = []
        for planned in committed.controls {
            if let control = ControlNames.control(planned.name, in: now.description.controls) {
                present.append((control, planned.value.fitting(control.type)))
            } else {
                missing.append(planned)
            }
        }
        let modes = present.filter { ControlGate.isController($0.control.id) }
        return (modes + present.filter { !ControlGate.isController($0.control.id) }, missing)
    }

    // What is locked is unlocked first and locked last.
    //
    /// - Returns: whether anything was set.
    private func restoreControls(
        _ now: inout DeviceSnapshot, _ spared: Set<String>
    ) throws(SourceError) -> Bool {
        var changed = false
        func set(_ control: CaptureControl, _ value: ControlValue) throws(SourceError) {
            changed = true
            attempted.insert(control.name)
            try attempt(NotRestored.path(ofControl: control.name)) { source throws(SourceError) in
                try source.setControl(control.name, to: value)
            }
        }
        let lock = wanted(now).present.first { AutomaticLock.isLock($0.control) && !spared.contains($0.control.name) }
        if let lock, let present = now.configuration.controls[lock.control.name]?.number,
            let value = lock.value.number
        {
            // What an automatic mode governs stays the camera's, and locked.
            let different = wanted(now).present.filter {
                isDifferent($0.control, $0.value, now) && !spared.contains($0.control.name)
                    && automaticMode(of: $0.control, now) == nil
            }
            let open = AutomaticLock.open(from: present, to: value, for: different.map(\.control.id))
            if open != present {
                try set(lock.control, .integer(open))
                now = try read()
            }
        }
        for isMode in [true, false] {
            var hasSet = false
            for (control, value) in wanted(now).present
            where ControlGate.isController(control.id) == isMode && !AutomaticLock.isLock(control) {
                guard isDifferent(control, value, now), !spared.contains(control.name),
                    automaticMode(of: control, now) == nil
                else { continue }
                hasSet = true
                try set(control, value)
            }
            // With the modes change the flags of what they govern, and sometimes the values.
            if isMode, hasSet { now = try read() }
        }
        if let lock, let present = try source.controlValues()[lock.control.name], !present.means(lock.value) {
            try set(lock.control, lock.value)
        }
        return changed
    }

    private func isDifferent(_ control: CaptureControl, _ value: ControlValue, _ now: DeviceSnapshot) -> Bool {
        guard let present = now.configuration.controls[control.name] else { return false }
        return !present.means(value)
    }

    /// The mode that is on and leaves the control's value to the camera; nil: none does.
    private func automaticMode(of control: CaptureControl, _ now: DeviceSnapshot) -> CaptureControl? {
        for gate in ControlGate.gates(of: control.id) {
            guard let mode = now.description.controls.first(where: { $0.id == gate.controller }),
                let value = now.configuration.controls[mode.name], !gate.isOpen(value)
            else { continue }
            return mode
        }
        return nil
    }

    private func controlDifferences(_ now: DeviceSnapshot, _ spared: Set<String>) -> [NotRestored] {
        let (present, missing) = wanted(now)
        var differences = missing.map { planned in
            NotRestored(
                path: NotRestored.path(ofControl: planned.name), wanted: planned.value.json, present: .null,
                why: "The device no longer has this control.")
        }
        for (control, value) in present {
            let path = NotRestored.path(ofControl: control.name)
            let given = now.configuration.controls[control.name]
            if let given, given.means(value) { continue }
            var why = refusals[path]
            if let mode = automaticMode(of: control, now) {
                // As it was committed: then the value is the camera's business.
                let isWished = present.first { $0.control.id == mode.id }.map { wish in
                    ControlGate.gates(of: control.id).contains { $0.controller == mode.id && !$0.isOpen(wish.value) }
                }
                if isWished ?? true { continue }
                why = "\(mode.title) is still on and controls it."
            } else if given != nil, !control.keepsItsValue {
                // What is read of it says nothing of what was set.
                if why == nil { continue }
            }
            if spared.contains(control.name) {
                why = "The camera itself or another program keeps changing it."
            }
            differences.append(
                NotRestored(
                    path: path, wanted: value.json, present: given?.json ?? .null,
                    why: why
                        ?? (given == nil
                            ? "It can't be read now."
                            : "The device accepts the value but doesn't keep "
                                + "it."))
            )
        }
        return differences
    }

    private func attempt(
        _ path: String, _ call: (any VideoSource) throws(SourceError) -> Void
    ) throws(SourceError) {
        do throws(SourceError) {
            try call(source)
            refusals[path] = nil
        } catch  where error.kind != .disconnected {
            isInUse = isInUse || error.kind == .inUse
            refusals[path] = error.holders.isEmpty ? "\(error)" : "\(error), in use by \(error.holders.named)"
        }
    }
}

extension ControlValue {
    /// The same value: a driver's 1 is a client's true.
    func means(_ other: ControlValue) -> Bool {
        if let number, let otherNumber = other.number { return number == otherNumber }
        return self == other
    }

    /// In the form that a control of that type has.
    func fitting(_ type: ControlType) -> ControlValue {
        guard let number else { return self }
        return type == .boolean ? .boolean(number != 0) : .integer(number)
    }
}
