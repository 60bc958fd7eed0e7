import BusProtocol
import BusServer
import CaptureCore
import JSON

/// `profile.save`, `apply`, `list`, `delete`
extension Coordinator {
    static let profileServices: [String: Service] = [
        "profile.save": { $0.saveProfile }, "profile.apply": { $0.applyProfile },
        "profile.list": { $0.listProfiles }, "profile.delete": { $0.deleteProfile },
    ]

    func saveProfile(_ call: Call, _ respond: @escaping Responder) {
        let name = call.string("name") ?? ""
        do throws(BusError) {
            // What can't be kept needs no reading.
            var trial = profiles.book
            try trial.save(Profile(devices: [], saved: 0), as: name)
            let devices = try devices(call)
            try checkCameras(devices, "a profile")
            let workers = devices.compactMap { fleet.workers[$0] }
            readSettings(workers) { [weak self] result in
                guard let self else { return }
                do throws(BusError) {
                    let profile = Profile(devices: try result.get(), saved: DeviceStore.now)
                    try profiles.change { book throws(BusError) in
                        try book.save(profile, as: name)
                    } then: {
                        [weak self] isKept in
                        guard let self else { return }
                        respond(.success(Self.told(isKept, ["profile": value(of: profile, name)])))
                    }
                } catch {
                    respond(.failure(error))
                }
            }
        } catch {
            respond(.failure(error))
        }
    }

    /// How the devices are set now: asked of all at once, told when the last one has answered.
    private func readSettings(
        _ workers: [WorkerHandle], _ completion: @escaping (Result<[DeviceSettings], BusError>) -> Void
    ) {
        var answers: [Int: DeviceSettings] = [:]
        var awaited = workers.count
        var refusal: BusError?
        for (index, worker) in workers.enumerated() {
            read(worker) { result in
                switch result {
                case .success(let settings): answers[index] = settings
                case .failure(let error): refusal = refusal ?? error
                }
                awaited -= 1
                guard awaited == 0 else { return }
                completion(refusal.map { .failure($0) } ?? .success(workers.indices.compactMap { answers[$0] }))
            }
        }
    }

    private func read(_ worker: WorkerHandle, _ completion: @escaping (Result<DeviceSettings, BusError>) -> Void) {
        worker.whenReady(withinMilliseconds: worker.device.isPlugged ? Self.patience : 0) {
            guard worker.isRunning, worker.isConnected else { return completion(.failure(Self.notReady(worker))) }
            worker.readControls { result in
                completion(
                    result.map { answer in
                        let identity = worker.device.identity
                        var settings = DeviceSettings(
                            uniqueID: identity.uniqueID, name: identity.localizedName, driver: identity.driver)
                        settings.controls = DeviceSettings.settable(answer["controls"]?.array ?? [])
                        let setting = worker.setting
                        settings.format = setting?.format
                        settings.format?.variant = worker.formats?.first { $0.id == setting?.formatID }?.variant
                        settings.frameDuration = setting?.frameDuration
                        return settings
                    })
            }
        }
    }

    func applyProfile(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let profile = try profiles.book.profile(call.string("name") ?? "")
            var batch = ConfigurationService.Batch(
                changes: [], mode: call.string("mode").flatMap(ConfigurationMode.init) ?? .exact,
                isDryRun: call.params["dryRun"]?.bool ?? false, fence: 0)
            var leftOut: [Adjustment] = []
            for (worker, settings) in try targets(of: profile, call) {
                let device = worker.device.id
                let (change, missed) = settings.change(
                    device: device, formats: worker.formats,
                    controls: batch.mode == .nearest ? Self.controls(of: worker) : nil,
                    mode: batch.mode, path: device)
                batch.changes.append((device, change, device))
                leftOut += missed
            }
            let holder = holder(call.caller)
            carryOut(batch, token: call.string("lock"), call) { [weak self, batch] result in
                let result = result.map { Self.told(leftOut, $0) }
                guard let self, !batch.isDryRun, case .success(let value) = result else { return respond(result) }
                respond(.success(Self.told(tellSessions(of: holder, batch.changes), value)))
            }
        } catch {
            respond(.failure(error))
        }
    }

    /// The devices that are to be set, and with what.
    private func targets(
        of profile: Profile, _ call: Call
    ) throws(BusError) -> [(worker: WorkerHandle, settings: DeviceSettings)] {
        guard call.params["devices"] != nil else {
            return try profile.devices.map { settings throws(BusError) in
                guard let worker = fleet.worker(of: settings.uniqueID) else {
                    throw BusError(
                        .deviceNotFound,
                        "\(settings.name) (\(settings.uniqueID)), which the profile was saved of, is not there; "
                            + "name the devices to set.", ["device": .string(settings.uniqueID)])
                }
                return (worker, settings)
            }
        }
        return try devices(call).compactMap { fleet.workers[$0] }.map { worker throws(BusError) in
            let identity = worker.device.identity
            guard
                let settings = profile.settings(
                    uniqueID: identity.uniqueID, name: identity.localizedName, driver: identity.driver)
            else {
                throw .invalidParams(
                    "devices",
                    "the profile was saved of other devices than \(worker.device.id), and not of just one like it")
            }
            return (worker, settings)
        }
    }

    private static func controls(of worker: WorkerHandle) -> [CaptureControl]? {
        worker.description?["controls"]?.array?.compactMap { try? CaptureControl(json: $0) }
    }

    /// What a device could not be told at all belongs to what is otherwise than it was asked.
    private static func told(_ leftOut: [Adjustment], _ result: JSONValue) -> JSONValue {
        guard !leftOut.isEmpty, var members = result.object else { return result }
        members["verdict"] = "adjusted"
        members["adjusted"] = .array(leftOut.map(\.json) + (members["adjusted"]?.array ?? []))
        return .object(members)
    }

    func listProfiles(_ call: Call, _ respond: @escaping Responder) {
        let book = profiles.book
        respond(
            .success(["profiles": .array(book.names.compactMap { name in book[name].map { value(of: $0, name) } })]))
    }

    private func value(of profile: Profile, _ name: String) -> JSONValue {
        let devices = profile.devices.map { settings -> JSONValue in
            var members = settings.json.object ?? [:]
            members["device"] = fleet.worker(of: settings.uniqueID).map { .string($0.device.id) } ?? .null
            return .object(members)
        }
        return ["name": .string(name), "saved": JSONValue(profile.saved), "devices": .array(devices)]
    }

    func deleteProfile(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let name = call.string("name") ?? ""
            try profiles.change { book throws(BusError) in
                try book.delete(name)
            } then: { isKept in
                respond(.success(Self.told(isKept, [:])))
            }
        } catch {
            respond(.failure(error))
        }
    }
}
