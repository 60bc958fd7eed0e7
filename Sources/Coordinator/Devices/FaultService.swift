import BusProtocol
import CaptureCore
import JSON

/// `fault.inject`, `script`, `list`, `cancel`
extension Coordinator {
    static let faultServices: [String: Service] = [
        "fault.inject": { $0.injectFault }, "fault.script": { $0.scriptFaults }, "fault.list": { $0.listFaults },
        "fault.cancel": { $0.cancelFaults },
    ]

    private func injectFault(_ call: Call, _ respond: @escaping Responder) {
        var fault = call.params.object ?? [:]
        fault["device"] = nil
        orderFault(call, .object(fault)) { result in
            // A worker that crashes as it was told can't say that it did.
            if call.string("fault") == "crash", case .failure(let error) = result, error.reason == .workerCrashed {
                respond(.success([:]))
            } else {
                respond(result)
            }
        }
    }

    private func scriptFaults(_ call: Call, _ respond: @escaping Responder) {
        orderFault(call, ["script": call.params["steps"] ?? []], respond)
    }

    private func listFaults(_ call: Call, _ respond: @escaping Responder) {
        orderFault(call, ["list": true], respond)
    }

    private func cancelFaults(_ call: Call, _ respond: @escaping Responder) {
        orderFault(call, ["cancel": true], respond)
    }

    private func orderFault(_ call: Call, _ fault: JSONValue, _ respond: @escaping Responder) {
        withWorker(call, respond) { worker in
            guard worker.device.source.hasFaults else {
                return respond(
                    .failure(
                        .invalidParams(
                            "device", "\(worker.device.id) is no virtual device; only those have faults on demand")))
            }
            // Also of one that is unplugged: it has been described before.
            worker.whenReady(withinMilliseconds: Self.patience) {
                worker.order(.fault(fault)) { respond($0) }
            }
        }
    }
}
