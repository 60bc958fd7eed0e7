import BusProtocol
import CaptureCore
import CaptureSources
import JSON

/// A change that was checked against the device and can be made.
struct PreparedChange: Hashable, Sendable {
    var plan: ConfigurationPlan
    var path: String
    var mode: ConfigurationMode
    /// Its format stands in for one that there is no room for, and is not kept.
    var isStandIn = false
    /// How the device would be set.
    var outcome: DeviceConfiguration
    /// All controls' values then.
    var values: [String: JSONValue]

    /// {activeFormat, frameDuration, controls, adjusted}
    var json: JSONValue { outcome.json(of: plan, values, adjustments: plan.adjustments) }

    /// The stream has to be stopped to make it.
    func needsQuiet(_ present: DeviceSnapshot) -> Bool {
        if let format = plan.format, format != present.configuration.format { return true }
        if let duration = plan.frameDuration, duration != present.configuration.frameDuration { return true }
        return plan.controls.contains { planned in
            present.configuration.controls[planned.name] != planned.value
                && present.description.controls.contains {
                    $0.name == planned.name && $0.flags.contains(.modifyLayout)
                }
        }
    }
}

/// A change that was made, with what is needed to take it back.
struct AppliedChange: Hashable, Sendable {
    var plan: ConfigurationPlan
    var adjustments: [Adjustment]
    var generation: UInt64
    var now: DeviceSnapshot
    var before: DeviceConfiguration
    var committedBefore: CommittedConfiguration?

    /// {generation, activeFormat, frameDuration, controls, adjusted}
    var json: JSONValue {
        var members = now.configuration.json(of: plan, now.values, adjustments: adjustments).object ?? [:]
        members["generation"] = JSONValue(generation)
        return .object(members)
    }
}

extension DeviceConfiguration {
    // Of the controls only those that were asked for: the others are in the device's state.
    fileprivate func json(
        of plan: ConfigurationPlan, _ values: [String: JSONValue], adjustments: [Adjustment]
    ) -> JSONValue {
        let names = Set(plan.controls.map(\.name)).subtracting(plan.implied).union(plan.cameraControls)
        var members = json.object ?? [:]
        members["controls"] = .object(values.filter { names.contains($0.key) })
        members["adjusted"] = .array(adjustments.map(\.json))
        return .object(members)
    }
}

extension CameraDevice {
    /// Checks a change against the open device, without changing it.
    func prepare(
        _ change: JSONValue, path: String, mode: ConfigurationMode, isStandIn: Bool = false
    ) throws(BusError) -> PreparedChange {
        let request = try ConfigurationChange.parse(change, path: path)
        let now = try translating { () throws(SourceError) in try read() }
        var description = now.description
        if isStandIn { description.formats += description.stillFormats }
        var plan = try ConfigurationPlanner(description: description).plan(
            request, path: path, current: now.configuration, mode: mode)
        if let wanted = plan.format, wanted != now.configuration.format {
            let given = try translating { () throws(SourceError) in try source.tryFormat(wanted) }
            if given != wanted {
                try accept(
                    given, for: wanted, mode, ConfigurationChange.path(of: "activeFormat", in: path), now.description,
                    &plan.adjustments)
                plan.format = given
                plan.formatID = now.description.formatID(of: given)
            }
        }
        var outcome = now.configuration
        if let format = plan.format {
            outcome.format = format
            outcome.formatID = plan.formatID
        }
        outcome.frameDuration = plan.frameDuration ?? outcome.frameDuration
        for control in plan.controls { outcome.controls[control.name] = control.value }
        outcome.words.merge(plan.words) { $1 }
        var then = now
        then.configuration = outcome
        return PreparedChange(
            plan: plan, path: path, mode: mode, isStandIn: isStandIn, outcome: outcome, values: then.values)
    }

    /// Makes a change and reads back what became of it. If it can't be made, the device is as it was before.
    func apply(_ change: PreparedChange) throws(BusError) -> AppliedChange {
        let before = try translating { () throws(SourceError) in try read() }
        do {
            var adjustments = change.plan.adjustments
            try setFormat(change, before, &adjustments)
            try setControls(change, before)
            try keepCrop(change.plan)
            var now = try translating { () throws(SourceError) in try read() }
            try verifyFormat(change, before, now, &adjustments)
            try verifyControls(change, now, &adjustments)
            generation += 1
            let committedBefore = committed
            let first = change.isStandIn ? before.configuration : now.configuration
            let known =
                committed
                ?? CommittedConfiguration(
                    generation: generation, format: first.format, frameDuration: first.frameDuration, controls: [])
            let changed = withExposure(
                known.changed(by: change.plan, generation: generation, to: now, isStandIn: change.isStandIn),
                change.plan, now)
            committed = changed
            now.configuration.words = changed.words
            snapshot = now
            forget(change.plan)
            return AppliedChange(
                plan: change.plan, adjustments: adjustments, generation: generation, now: now,
                before: before.configuration, committedBefore: committedBefore)
        } catch {
            let left = putBack(before.configuration, undoing: change.plan)
            guard let left else { throw error }
            var error = error
            error.message += " The device could not be restored: \(left)"
            error.data["notRolledBack"] = true
            throw error
        }
    }

    /// Takes back what a change has committed; the device need not be open. However ``rollBack(_:)`` ends, the next
    /// opening puts back what was committed before.
    func revoke(_ change: AppliedChange) {
        generation += 1
        // Without one before, it is kept as it was then: nothing at all would be taken for no news.
        committed =
            change.committedBefore
            ?? CommittedConfiguration(
                generation: generation, format: change.before.format, frameDuration: change.before.frameDuration,
                controls: [])
        committed?.generation = generation
        forget(change.plan)
    }

    /// Takes back what a change has set at the device, after ``revoke(_:)``.
    func rollBack(_ change: AppliedChange) throws(BusError) -> DeviceSnapshot {
        if let left = putBack(change.before, undoing: change.plan) {
            throw BusError(.internalError, "\(device) could not be restored: \(left)", ["device": .string(device)])
        }
        return try translating { () throws(SourceError) in try read() }
    }

    // What is asked for anew is not missed any more.
    private func forget(_ plan: ConfigurationPlan) {
        forget { entry in
            if entry.path == "activeFormat" { return plan.format != nil }
            if entry.path == "frameRate" { return plan.format != nil || plan.frameDuration != nil }
            return plan.controls.contains { NotRestored.path(ofControl: $0.name) == entry.path }
        }
    }

    // MARK: Making it

    func setFormat(
        _ change: PreparedChange, _ before: DeviceSnapshot, _ adjustments: inout [Adjustment]
    ) throws(BusError) {
        if let wanted = change.plan.format, wanted != before.configuration.format {
            let given = try translating { () throws(SourceError) in try source.setFormat(wanted) }
            if given != wanted {
                try accept(
                    given, for: wanted, change.mode, ConfigurationChange.path(of: "activeFormat", in: change.path),
                    before.description, &adjustments)
            }
        }
        // A format that was set brings a rate of its own, so a planned one is set also where it was set before.
        let path = ConfigurationChange.path(of: "frameRate", in: change.path)
        guard let wanted = change.plan.frameDuration else {
            // No row of the format table says that it would.
            guard let was = before.configuration.frameDuration, let format = change.plan.format,
                format != before.configuration.format, !adjustments.contains(where: { $0.path == path })
            else { return }
            let present = try translating { () throws(SourceError) in try source.frameDuration() }
            guard let given = present, !given.isNearly(was) else { return }
            adjustments.append(
                Adjustment(
                    path: path, asked: was.json, given: given.json,
                    why: "The driver has set another frame rate with the new format."))
            return
        }
        guard change.plan.format != nil || wanted != before.configuration.frameDuration else { return }
        let present = try translating { () throws(SourceError) in try source.frameDuration() }
        if let present, present.isNearly(wanted) { return }
        let given = try translating { () throws(SourceError) in try source.setFrameDuration(wanted) }
        guard !given.isNearly(wanted) else { return }
        let why = "\(device) runs at \(given.framesPerSecond) frames a second instead of \(wanted.framesPerSecond)."
        guard change.mode == .nearest else {
            let format = change.plan.formatID ?? before.configuration.formatID
            let ranges = before.description.formats.first { $0.id == format }?.frameRates ?? []
            throw BusError(
                .frameRateUnsupported, why,
                ["device": .string(device), "ranges": .array(ranges.map(\.json)), "nearest": given.json])
        }
        let asked = adjustments.first { $0.path == path }?.asked ?? wanted.json
        adjustments.removeAll { $0.path == path }
        adjustments.append(Adjustment(path: path, asked: asked, given: given.json, why: why))
    }

    func setControls(_ change: PreparedChange, _ before: DeviceSnapshot) throws(BusError) {
        let controls = AutomaticLock.ordered(
            change.plan.controls, before.description.controls, before.configuration.controls)
        for control in controls {
            try translating(before.description) { () throws(SourceError) in
                try source.setControl(control.name, to: control.value)
            }
        }
    }

    private func verifyControls(
        _ change: PreparedChange, _ now: DeviceSnapshot, _ adjustments: inout [Adjustment]
    ) throws(BusError) {
        for wanted in change.plan.controls {
            guard let control = now.description.controls.first(where: { $0.name == wanted.name }),
                control.keepsItsValue, let given = now.configuration.controls[wanted.name], given != wanted.value
            else { continue }
            if control.type == .rectangle {
                adjustments.append(rounded(control, wanted, given, change))
                continue
            }
            let why = "\(device) made \(given.json) of \(wanted.value.json) for \(wanted.name)."
            guard change.mode == .nearest else {
                throw BusError(
                    .controlOutOfRange, why,
                    [
                        "device": .string(device), "control": .string(wanted.name), "min": .integer(control.minimum),
                        "max": .integer(control.maximum), "step": .integer(control.step),
                    ])
            }
            adjustments.append(
                Adjustment(
                    path: ConfigurationChange.path(of: "controls.\(wanted.name)", in: change.path),
                    asked: wanted.value.json, given: given.json,
                    why: why))
        }
    }

    private func accept(
        _ given: FormatSelection, for wanted: FormatSelection, _ mode: ConfigurationMode, _ path: String,
        _ description: DeviceDescription, _ adjustments: inout [Adjustment]
    ) throws(BusError) {
        let why =
            "\(device) makes \(given.pixelFormat.name) \(given.dimensions) of \(wanted.pixelFormat.name) "
            + "\(wanted.dimensions)."
        let nearest = DeviceConfiguration(formatID: description.formatID(of: given), format: given).json["activeFormat"]
        guard mode == .nearest else {
            throw BusError(.formatUnsupported, why, ["device": .string(device), "nearest": nearest ?? .null])
        }
        adjustments.append(Adjustment(path: path, asked: wanted.json, given: nearest ?? .null, why: why))
    }

    // MARK: Taking it back

    /// - Returns: what could not be put back, in words; nil: all was.
    func putBack(_ before: DeviceConfiguration, undoing plan: ConfigurationPlan) -> String? {
        // The final state of the device counts; a refusal on the way is reported only if it mattered.
        var refusals: [String] = []
        func attempt(_ action: () throws(SourceError) -> Void) {
            do throws(SourceError) { try action() } catch { refusals.append("\(error)") }
        }
        attempt { () throws(SourceError) in
            if try source.activeFormat() != before.format { _ = try source.setFormat(before.format) }
            if let duration = before.frameDuration, try source.frameDuration() != duration {
                _ = try source.setFrameDuration(duration)
            }
        }
        // Backwards, so that a manual value is put back before the automatic mode that gates it.
        let values = plan.controls.reversed().compactMap { control in
            before.controls[control.name].map { PlannedControl(name: control.name, value: $0) }
        }
        let controls = AutomaticLock.ordered(
            values, description?.controls ?? [], (try? source.controlValues()) ?? [:])
        for control in controls {
            attempt { () throws(SourceError) in
                if try source.controlValues()[control.name] != control.value {
                    try source.setControl(control.name, to: control.value)
                }
            }
        }
        putBackOthers(before)
        var differences: [String] = []
        do {
            let now = try read()
            if now.configuration.format != before.format {
                differences.append("the format is \(now.configuration.format.json)")
            }
            // What an automatic mode governs again is the camera's to choose.
            for control in now.description.controls where control.keepsItsValue && !control.flags.contains(.inactive) {
                guard plan.controls.contains(where: { $0.name == control.name }),
                    let value = now.configuration.controls[control.name], value != before.controls[control.name]
                else { continue }
                differences.append("\(control.name) is \(value.json)")
            }
        } catch {
            differences.append("\(error)")
        }
        return differences.isEmpty ? nil : (differences + refusals).joined(separator: "; ")
    }

    // A mode that was on for a moment may have moved what it governs.
    private func putBackOthers(_ before: DeviceConfiguration) {
        guard let now = try? read() else { return }
        for control in now.description.controls where control.keepsItsValue && !control.flags.contains(.inactive) {
            guard let value = before.controls[control.name], now.configuration.controls[control.name] != value else {
                continue
            }
            try? source.setControl(control.name, to: value)
        }
    }

    func translating<Value>(
        _ known: DeviceDescription? = nil, _ call: () throws(SourceError) -> Value
    ) throws(BusError) -> Value {
        do throws(SourceError) {
            return try call()
        } catch {
            throw BusError(error, device: device, description: known ?? description)
        }
    }
}

extension CaptureControl {
    /// What is set is what is read afterwards.
    var keepsItsValue: Bool {
        type != .button && type != .unknown
            && flags.isDisjoint(with: [.readOnly, .writeOnly, .volatile, .executeOnWrite, .disabled])
    }

    /// Setting it again makes it what it was, and nothing else happens.
    var canBePutBack: Bool {
        type != .button && type != .unknown
            && flags.isDisjoint(with: [.readOnly, .writeOnly, .executeOnWrite, .disabled])
    }
}

extension FrameDuration {
    /// The same but for how a driver rounds: 333333/10000000 is 1/30.
    func isNearly(_ other: FrameDuration) -> Bool { abs(seconds / other.seconds - 1) < 0.0001 }
}
