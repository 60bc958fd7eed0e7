import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import ZeroMQ

/// Ends the bus.
protocol BusLifetime: AnyObject {
    /// Ends everything in order.
    func stop()
}

/// `bus.*`
final class BusService: MethodService {
    weak var lifetime: (any BusLifetime)?
    private let state: BusState
    private let clients: ClientRegistry
    private let connections: ConnectionGuard
    private let permission: AuthorizationService
    private let configuration: LiveConfiguration
    private let directory: RuntimeDirectory
    private let events: EventSocket
    private let workers: WorkerSupervisor
    private let locks: LockService
    private let cancellations: CancellationTable
    private let counters: CommandCounters
    private let departures: ClientDepartures

    init(
        _ state: BusState, _ clients: ClientRegistry, _ connections: ConnectionGuard,
        _ permission: AuthorizationService,
        _ configuration: LiveConfiguration, _ directory: RuntimeDirectory, _ events: EventSocket,
        _ workers: WorkerSupervisor, _ locks: LockService, _ cancellations: CancellationTable,
        _ counters: CommandCounters,
        _ departures: ClientDepartures
    ) {
        self.state = state
        self.clients = clients
        self.connections = connections
        self.permission = permission
        self.configuration = configuration
        self.directory = directory
        self.events = events
        self.workers = workers
        self.locks = locks
        self.cancellations = cancellations
        self.counters = counters
        self.departures = departures
    }

    var methods: [String: Handler] {
        [
            "bus.hello": .plain(hello), "bus.ping": .plain { $1(.success([:])) }, "bus.cancel": .plain(cancel),
            "bus.shutdown": .plain(shutDown), "bus.snapshot": .plain(snapshot),
            "bus.methods": .plain { $1(.success(MethodTable.json)) }, "bus.metrics": .plain(metrics),
            "bus.clock": .plain(clock), "bus.leave": .plain(leave),
        ]
    }

    private func hello(_ call: Call, _ respond: @escaping Responder) {
        if let version = call.params["version"]?.integer, version != Int64(MethodTable.protocolVersion) {
            return respond(
                .failure(
                    BusError(
                        .versionUnsupported, "This bus speaks version \(MethodTable.protocolVersion) of the protocol.",
                        ["supported": [JSONValue(MethodTable.protocolVersion)]])))
        }
        clients.greeted(call.caller, name: call.string("client"))
        let peer = call.caller.peer
        let media = workers.all.mapValues { worker in
            JSONValue.string(worker.mediaPath ?? directory.mediaSocket(worker.device.id))
        }
        // A client on another machine has no process that the bus could watch.
        let pid = call.caller.remote == nil ? peer.pid : 0
        var result: [String: JSONValue] = [
            "server": "CameraBus", "version": .string(BusState.version),
            "protocol": JSONValue(MethodTable.protocolVersion),
            "features": JSONValue(Feature.allCases.map(\.rawValue)),
            "you": ["uid": JSONValue(peer.uid), "gid": JSONValue(peer.gid), "pid": JSONValue(pid)],
            "authorization": permission.authorizations(of: call.caller),
            "endpoints": [
                "command": .string(directory.commandSocket), "events": .string(directory.eventsSocket),
                "media": .object(media),
            ],
            "epoch": .string(state.epoch), "sequence": JSONValue(events.store.sequence), "limits": limits,
        ]
        if let name = call.caller.remote {
            result["remote"] = [
                "name": .string(name), "role": .string(permission.role(of: call.caller).rawValue),
            ]
        }
        respond(.success(.object(result)))
    }

    /// `bus.clock`: the time of this machine, and how far it may be from the true time.
    private func clock(_ call: Call, _ respond: @escaping Responder) {
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
        limits["connectionsPerUser"] = JSONValue(configuration.current.connectionsPerUser)
        limits["renditions"] = JSONValue(configuration.current.renditions)
        return .object(limits)
    }

    private func cancel(_ call: Call, _ respond: @escaping Responder) {
        let key = RequestKey(uid: call.caller.peer.uid, key: call.string("key") ?? "")
        respond(.success(["cancelled": .bool(cancellations.cancel(key))]))
    }

    private func shutDown(_ call: Call, _ respond: @escaping Responder) {
        respond(.success([:]))
        lifetime?.stop()
    }

    private func snapshot(_ call: Call, _ respond: @escaping Responder) {
        respond(.success(events.store.snapshot(prefix: call.string("prefix") ?? "")))
    }

    private func metrics(_ call: Call, _ respond: @escaping Responder) {
        var values: [String: JSONValue] = [
            "requests_total": JSONValue(counters.requests),
            "requests_refused_total": JSONValue(counters.refusals),
            "replies_dropped_total": JSONValue(counters.droppedReplies),
            "connections": JSONValue(connections.count), "connections_refused_total": JSONValue(connections.refused),
            "connections_turned_away_total": JSONValue(Context.connectionsTurnedAway),
            "connections_cut_off_total": JSONValue(Context.connectionsCutOff),
            "locks": JSONValue(locks.table.locks.count), "lock_waits": JSONValue(locks.table.waitingTickets.count),
            "processorTime": JSONValue(ProcessUsage.processorTime),
        ]
        if let bytes = ProcessUsage.residentBytes { values["residentBytes"] = JSONValue(bytes) }
        for (id, worker) in workers.all {
            values["worker_restarts_total{device=\"\(id)\"}"] = JSONValue(worker.restarts)
            for (name, value) in worker.counters.object ?? [:] where value.double != nil {
                values["worker_\(name){device=\"\(id)\"}"] = value
            }
            for (rendition, made) in worker.counters["renditions"]?.object ?? [:] {
                for (name, value) in made.object ?? [:] where value.double != nil {
                    values["worker_rendition_\(name){device=\"\(id)\",rendition=\"\(rendition)\"}"] = value
                }
            }
        }
        for (rig, counters) in workers.matchers?.counters ?? [:] {
            for (name, value) in counters.object ?? [:] where value.double != nil {
                values["matcher_\(name){rig=\"\(rig)\"}"] = value
            }
        }
        respond(.success(["counters": .object(values), "histograms": [:]]))
    }

    private func leave(_ call: Call, _ respond: @escaping Responder) {
        let holder = clients.holder(call.caller)
        // A remote user has a uid of its own, also where its gateway's process can't be seen. What a local process that
        // can't be seen holds can't be distinguished from what others hold.
        let isRemote = call.caller.remote != nil
        if isRemote || holder.startTime != nil { departures.left(holder, isRemote: isRemote) }
        respond(.success([:]))
    }
}
