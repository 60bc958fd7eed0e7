import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// The rigs: which devices each has now. Publishes `state/rig/<name>/`.
final class RigRegistry: ProblemReporter {
    /// A device of a rig, if it is there.
    struct Member {
        /// A `uniqueID`, or the id that a configuration file has.
        var reference: String
        var worker: WorkerHandle?
    }

    private let file: FileStore<RigTable>
    private let events: EventSocket
    private let workers: WorkerSupervisor
    /// The rigs that are published.
    private var published: Set<String> = []
    /// The devices are known. Before that, all would seem to be missing.
    private var hasBegun = false
    /// Called with the rigs that can be used, whenever they may have changed.
    var onChange: ((_ names: Set<String>) -> Void)?

    init(_ file: FileStore<RigTable>, events: EventSocket, _ workers: WorkerSupervisor) {
        self.file = file
        self.events = events
        self.workers = workers
    }

    /// The device with that `uniqueID`, or else with that id.
    private func find(_ reference: String) -> WorkerHandle? { workers.worker(of: reference) ?? workers[reference] }

    var names: [String] { file.table.names }

    func isRig(_ name: String) -> Bool { file.table[name] != nil }

    /// The rigs of the configuration file.
    func setConfigured(_ rigs: [String: Rig]) {
        file.amend { $0.configured = rigs }
        refresh()
    }

    /// A rig may have changed.
    func refresh() { if hasBegun { publish() } }

    /// The devices of a rig, the lead first; nil: there is no such rig.
    func members(of name: String) -> [Member]? {
        file.table[name]?.devices.map { Member(reference: $0, worker: find($0)) }
    }

    /// The ids of a rig's devices.
    ///
    /// - Throws: `deviceNotFound` when one is not there; nil: there is no such rig.
    func devices(of name: String) throws(BusError) -> [String]? {
        guard let members = members(of: name) else { return nil }
        return try members.map { member throws(BusError) in
            guard let worker = member.worker else {
                throw BusError(
                    .deviceNotFound, "The rig '\(name)' has a device that is not connected: \(member.reference).",
                    ["device": .string(member.reference), "rig": .string(name)])
            }
            return worker.device.id
        }
    }

    /// Makes or changes a rig; the completion is called when that is on the disk, or can't be.
    func set(_ rig: Rig, as name: String, by editor: Editor, then body: @escaping (Bool) -> Void) throws(BusError) {
        try file.change { table throws(BusError) in
            try table.set(rig, as: name, by: editor)
        } then: {
            body($0)
        }
        publish()
    }

    func delete(_ name: String, by editor: Editor, then body: @escaping (Bool) -> Void) throws(BusError) {
        try file.change { table throws(BusError) in
            try table.delete(name, by: editor)
        } then: {
            body($0)
        }
        publish()
    }

    /// The value of `state/rig/<name>/`.
    func value(of name: String) -> JSONValue? {
        guard let rig = file.table[name], let members = members(of: name) else { return nil }
        let devices = members.map { member -> JSONValue in
            let device = member.worker?.device
            return [
                "id": device.map { .string($0.id) } ?? .null,
                "uniqueID": .string(device?.identity.uniqueID ?? member.reference),
                "name": device.map { .string($0.identity.localizedName) } ?? .null,
                "connected": .bool(member.worker?.isConnected ?? false),
            ]
        }
        return [
            "name": .string(name), "devices": .array(devices), "owner": rig.owner.map { JSONValue($0) } ?? .null,
            "tolerance": rig.tolerance.map { JSONValue.milliseconds($0) } ?? .null,
            "configured": .bool(file.table.isConfigured(name)),
            "complete": .bool(members.allSatisfy { $0.worker?.isConnected ?? false }),
        ]
    }

    /// Publishes the rigs. Called first when the devices are known.
    func publish() {
        hasBegun = true
        let names = Set(file.table.names)
        for name in published.subtracting(names) { events.set("state/rig/\(name)", nil) }
        for name in names { events.set("state/rig/\(name)", value(of: name)) }
        published = names
        onChange?(names.filter { workers[$0] == nil })
    }

    /// What a person should know about rigs.
    var problems: [Problem] {
        var problems = file.problems
        for name in file.table.names {
            if workers[name] != nil { problems.append(.rigHidden(name)) }
            for member in members(of: name) ?? [] where member.worker == nil {
                problems.append(.rigIncomplete(name, member.reference))
            }
        }
        return problems
    }

    func close() { file.close() }
}

extension JSONValue {
    /// A time in nanoseconds, as milliseconds.
    static func milliseconds(_ nanoseconds: Int64) -> JSONValue {
        nanoseconds % 1_000_000 == 0 ? .integer(nanoseconds / 1_000_000) : .number(Double(nanoseconds) / 1e6)
    }
}
