import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import ZeroMQ

/// `bus.*`
extension Coordinator {
    func hello(_ call: Call, _ respond: @escaping Responder) {
        if let version = call.params["version"]?.integer, version != Int64(MethodTable.protocolVersion) {
            return respond(
                .failure(
                    BusError(
                        .versionUnsupported, "This bus speaks version \(MethodTable.protocolVersion) of the protocol.",
                        ["supported": [JSONValue(MethodTable.protocolVersion)]])))
        }
        clientNames[call.caller.connection] = call.string("client")
        let peer = call.caller.peer
        connections.update()
        // A gateway's process is not called what those are for whom it asks.
        if call.caller.remote == nil, let process = connections.peer(pid: peer.pid) {
            processNames[process] = call.string("client")
        }
        let media = fleet.workers.mapValues { worker in
            JSONValue.string(worker.mediaPath ?? directory.mediaSocket(worker.device.id))
        }
        // Of one on another machine there is no process that the bus could watch.
        let pid = call.caller.remote == nil ? peer.pid : 0
        var result: [String: JSONValue] = [
            "server": "CameraBus", "version": .string(Self.version),
            "protocol": JSONValue(MethodTable.protocolVersion),
            "features": JSONValue(Feature.allCases.map(\.rawValue)),
            "you": ["uid": JSONValue(peer.uid), "gid": JSONValue(peer.gid), "pid": JSONValue(pid)],
            "authorization": authorizations(of: call.caller),
            "endpoints": [
                "command": .string(directory.commandSocket), "events": .string(directory.eventsSocket),
                "media": .object(media),
            ],
            "epoch": .string(epoch), "sequence": JSONValue(events.store.sequence), "limits": limits,
        ]
        if let name = call.caller.remote {
            result["remote"] = [
                "name": .string(name), "role": .string(permission.role(of: call.caller).rawValue),
            ]
        }
        respond(.success(.object(result)))
    }

    /// `bus.clock`: what time this machine has, and how far that may be from the truth.
    func clock(_ call: Call, _ respond: @escaping Responder) {
        let state = ClockState.now()
        respond(
            .success([
                "monotonic": JSONValue(MonotonicClock.now()), "realtime": JSONValue(MonotonicClock.realtime()),
                "synchronized": .bool(state.isSynchronized),
                "error": state.maximumError.map { JSONValue($0) } ?? .null,
            ]))
    }

    private var limits: JSONValue {
        var limits = BusLimits.json.object ?? [:]
        limits["connectionsPerUser"] = JSONValue(configuration.connectionsPerUser)
        limits["renditions"] = JSONValue(configuration.renditions)
        return .object(limits)
    }

    func cancel(_ call: Call, _ respond: @escaping Responder) {
        let key = RequestKey(uid: call.caller.peer.uid, key: call.string("key") ?? "")
        let giveUp = cancellations.removeValue(forKey: key)
        giveUp?()
        respond(.success(["cancelled": .bool(giveUp != nil)]))
    }

    func shutDown(_ call: Call, _ respond: @escaping Responder) {
        respond(.success([:]))
        stop()
    }

    func snapshot(_ call: Call, _ respond: @escaping Responder) {
        respond(.success(events.store.snapshot(prefix: call.string("prefix") ?? "")))
    }

    func metrics(_ call: Call, _ respond: @escaping Responder) {
        var counters: [String: JSONValue] = [
            "requests_total": JSONValue(commands?.requests ?? 0),
            "requests_refused_total": JSONValue(commands?.refusals ?? 0),
            "replies_dropped_total": JSONValue(commands?.droppedReplies ?? 0),
            "connections": JSONValue(connections.count), "connections_refused_total": JSONValue(connections.refused),
            "connections_turned_away_total": JSONValue(Context.connectionsTurnedAway),
            "locks": JSONValue(locks.table.locks.count), "lock_waits": JSONValue(locks.table.waitingTickets.count),
            "processorTime": JSONValue(ProcessUsage.processorTime),
        ]
        if let bytes = ProcessUsage.residentBytes { counters["residentBytes"] = JSONValue(bytes) }
        for (id, worker) in fleet.workers {
            counters["worker_restarts_total{device=\"\(id)\"}"] = JSONValue(worker.restarts)
            for (name, value) in worker.counters.object ?? [:] where value.double != nil {
                counters["worker_\(name){device=\"\(id)\"}"] = value
            }
            for (rendition, made) in worker.counters["renditions"]?.object ?? [:] {
                for (name, value) in made.object ?? [:] where value.double != nil {
                    counters["worker_rendition_\(name){device=\"\(id)\",rendition=\"\(rendition)\"}"] = value
                }
            }
        }
        respond(.success(["counters": .object(counters), "histograms": [:]]))
    }
}
