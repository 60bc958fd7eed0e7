import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// Knows the rigs: which devices each has now, and who is to be told of that.
final class RigDesk {
    /// A device of a rig: the one that its book or the configuration means, if it is there.
    struct Member {
        /// A `uniqueID`, or the id that a configuration file has.
        var reference: String
        var worker: Worker?
    }

    private let file: BookFile<RigTable>
    private let events: EventSocket
    /// The device of that `uniqueID`, else the one of that id.
    private let find: (_ reference: String) -> Worker?
    private let workerOf: (_ id: String) -> Worker?
    /// The rigs that are published.
    private var published: Set<String> = []
    /// It is known which devices there are: before that, all would seem to be missing.
    private var hasBegun = false
    /// Told of the rigs that there are and can be used, whenever that may have changed.
    var onChange: ((_ names: Set<String>) -> Void)?

    init(_ file: BookFile<RigTable>, events: EventSocket, _ fleet: DeviceFleet) {
        self.file = file
        self.events = events
        find = { fleet.worker(of: $0) ?? fleet.workers[$0] }
        workerOf = { fleet.workers[$0] }
    }

    var names: [String] { file.book.names }

    func isRig(_ name: String) -> Bool { file.book[name] != nil }

    /// The rigs of the configuration file.
    func setConfigured(_ rigs: [String: Rig]) {
        file.amend { $0.configured = rigs }
        refresh()
    }

    /// Something of what rigs are may be otherwise now.
    func refresh() { if hasBegun { publish() } }

    /// The devices of a rig, the lead first; nil: there is no such rig.
    func members(of name: String) -> [Member]? {
        file.book[name]?.devices.map { Member(reference: $0, worker: find($0)) }
    }

    /// The ids of a rig's devices.
    ///
    /// - Throws: `deviceNotFound` when one is not there; nil: there is no such rig.
    func devices(of name: String) throws(BusError) -> [String]? {
        guard let members = members(of: name) else { return nil }
        return try members.map { member throws(BusError) in
            guard let worker = member.worker else {
                throw BusError(
                    .deviceNotFound, "The rig '\(name)' has a device that is not there: \(member.reference).",
                    ["device": .string(member.reference), "rig": .string(name)])
            }
            return worker.device.id
        }
    }

    /// Makes or changes a rig; the completion is called when that is on the disk, or can't be.
    func set(_ rig: Rig, as name: String, then body: @escaping (Bool) -> Void) throws(BusError) {
        try file.change { book throws(BusError) in
            try book.set(rig, as: name)
        } then: {
            body($0)
        }
        publish()
    }

    func delete(_ name: String, then body: @escaping (Bool) -> Void) throws(BusError) {
        try file.change { book throws(BusError) in
            try book.delete(name)
        } then: {
            body($0)
        }
        publish()
    }

    /// The value of `state/rig/<name>/`.
    func value(of name: String) -> JSONValue? {
        guard let rig = file.book[name], let members = members(of: name) else { return nil }
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
            "name": .string(name), "devices": .array(devices),
            "tolerance": rig.tolerance.map { JSONValue.milliseconds($0) } ?? .null,
            "configured": .bool(file.book.isConfigured(name)),
            "complete": .bool(members.allSatisfy { $0.worker?.isConnected ?? false }),
        ]
    }

    /// Tells how the rigs are now. To be called first when it is known which devices there are.
    func publish() {
        hasBegun = true
        let names = Set(file.book.names)
        for name in published.subtracting(names) { events.set("state/rig/\(name)", nil) }
        for name in names { events.set("state/rig/\(name)", value(of: name)) }
        published = names
        onChange?(names.filter { workerOf($0) == nil })
    }

    /// What a person should know of rigs.
    ///
    /// - Parameter isDevice: whether a device has, or is promised, that id.
    func problems(isDevice: (String) -> Bool) -> [Problem] {
        var problems = file.problem.map { [$0] } ?? []
        for name in file.book.names {
            if isDevice(name) { problems.append(.rigHidden(name)) }
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
