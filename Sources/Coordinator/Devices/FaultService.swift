import BusProtocol
import CaptureCore
import JSON

/// `fault.inject`, `script`, `list`, `cancel`: faults on demand of virtual devices.
final class FaultService: MethodService {
    private let resolver: DeviceResolver

    init(_ resolver: DeviceResolver) { self.resolver = resolver }

    var methods: [String: Handler] {
        [
            "fault.inject": .plain(inject), "fault.script": .plain(script), "fault.list": .plain(list),
            "fault.cancel": .plain(cancel),
        ]
    }

    private func inject(_ call: Call, _ respond: @escaping Responder) {
        var fault = call.params.object ?? [:]
        fault["device"] = nil
        order(call, .object(fault)) { result in
            // A worker that crashes as ordered can't report that it did.
            if call.string("fault") == "crash", case .failure(let error) = result, error.reason == .workerCrashed {
                respond(.success([:]))
            } else {
                respond(result)
            }
        }
    }

    private func script(_ call: Call, _ respond: @escaping Responder) {
        order(call, ["script": call.params["steps"] ?? []], respond)
    }

    private func list(_ call: Call, _ respond: @escaping Responder) {
        order(call, ["list": true], respond)
    }

    private func cancel(_ call: Call, _ respond: @escaping Responder) {
        order(call, ["cancel": true], respond)
    }

    private func order(_ call: Call, _ fault: JSONValue, _ respond: @escaping Responder) {
        resolver.withWorker(call, respond) { worker in
            guard worker.device.source.hasFaults else {
                return respond(
                    .failure(
                        .invalidParams(
                            "device", "\(worker.device.id) is not a virtual device; only virtual devices have faults")))
            }
            // Also for a device that is unplugged: it was described before.
            worker.whenReady(withinMilliseconds: WorkerHandle.patience) {
                worker.order(.fault(fault)) { respond($0) }
            }
        }
    }
}
