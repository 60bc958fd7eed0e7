import BusProtocol
import CaptureCore
import JSON

/// The results of sessions, and the reasons: for their state, and for replies.
extension SessionRegistry {
    /// The value of `state/session/<id>/`.
    func value(_ entry: Entry) -> JSONValue {
        var members = entry.session.members
        members["resolved"] = .array(resolved(entry))
        members["inputs"] = .array(inputs(of: entry, members["inputs"]?.array ?? []))
        members["outputs"] = .array(outputs(of: entry.session, members["outputs"]?.array ?? []))
        members["hardwareCost"] =
            entry.session.run.isWanted ? .number(BandwidthBudget.rounded(hardwareCost(entry.session))) : .null
        members["explanation"] = JSONValue(explanation(entry))
        members["error"] =
            entry.error.map {
                ["reason": .string($0.reason.rawValue), "message": .string($0.message)]
            } ?? .null
        return .object(members)
    }

    /// Each with what it delivers: null while the session gets nothing of it, and of a microphone.
    private func inputs(of entry: Entry, _ values: [JSONValue]) -> [JSONValue] {
        zip(entry.session.inputs, values).map { input, value -> JSONValue in
            var members = value.object ?? [:]
            members["formatDescription"] = .null
            if case .served? = entry.places[input.device], let worker = workers[input.device] {
                members["formatDescription"] = worker.formatDescription
            }
            return .object(members)
        }
    }

    private func outputs(of session: CaptureSession, _ values: [JSONValue]) -> [JSONValue] {
        zip(session.outputs, values).map { output, value -> JSONValue in
            guard output.kind == .photo, let photos, let members = value.object else { return value }
            return .object(members.merging(photos.members(of: session)) { $1 })
        }
    }

    /// What each output gets, of devices that serve the session; and outputs that can get nothing.
    func resolved(_ entry: Entry) -> [JSONValue] {
        guard entry.session.run.isWanted else { return [] }
        let served = entry.session.inputs.flatMap { input -> [JSONValue] in
            switch entry.places[input.device] {
            case .served(let delivery)?:
                deliveries(entry.session, input.device, delivery).map {
                    $0.json(refused: refusal(of: $0.rendition?.description, input.device))
                }
            case .heard(let microphone)?:
                entry.session.soundDeliveries(
                    of: input.device, microphone, since: entry.soundFormats[input.device]
                ).map { $0.json(refused: refusal(of: $0.rendition?.description, input.device)) }
            case .pending?, .denied?, nil: []
            }
        }
        return served + entry.session.unservedOutputs.map(\.json)
    }

    private func deliveries(
        _ session: CaptureSession, _ device: String, _ delivery: DemandDelivery
    ) -> [SessionDelivery] {
        var delivery = delivery
        if let actual = actualSize(device) {
            delivery.dimensions = actual.pictures.replacing(actual.format, in: delivery.dimensions)
        }
        return session.deliveries(
            of: device, delivery, position: position(device), orientation: orientation(device),
            stabilization: stabilization(device))
    }

    /// The size of a camera's format, and that of its pictures; nil: they are the same, or not known.
    private func actualSize(_ device: String) -> (format: Dimensions, pictures: Dimensions)? {
        guard let worker = workers[device], let format = worker.activeFormat.flatMap(Dimensions.init(json:)),
            let pictures = Dimensions(json: worker.formatDescription), pictures != format
        else { return nil }
        return (format, pictures)
    }

    private static let maximumSentences = 32

    /// The arbiter's sentences on the session's devices.
    func explanation(_ entry: Entry) -> [String] {
        guard entry.session.run.isWanted else { return [] }
        if entry.session.run.state == .waitingForAuthorization {
            return access.refusal(entry.session).map { ["The session waits for permission. " + $0.message] } ?? []
        }
        let obstacles = entry.session.inputs.flatMap { input -> [String] in
            guard case .served(let delivery)? = entry.places[input.device] else { return [] }
            return deliveries(entry.session, input.device, delivery).compactMap(\.sentence)
        }
        let sizes = entry.session.inputs.compactMap { input -> String? in
            guard case .served? = entry.places[input.device], let actual = actualSize(input.device) else { return nil }
            return "The pictures of \(input.device) have \(actual.pictures), although its format has \(actual.format)."
        }
        let sentences =
            entry.session.unservedOutputs.map(\.sentence) + obstacles + sizes
            + entry.session.inputs.flatMap { stages[$0.device]?.explanation ?? [] }
            + bandwidthSentences(entry.session)
        // Each of many sessions on one camera is told of all the others.
        return Array(sentences.prefix(Self.maximumSentences))
    }

    /// What a session that is not started would get.
    func forecast(_ session: CaptureSession) -> (resolved: [JSONValue], explanation: [String]) {
        let unserved = session.unservedOutputs
        var (resolved, explanation) = ([JSONValue](), unserved.map(\.sentence))
        for input in session.inputs {
            if input.mediaType == .audio {
                let (sound, why) = soundForecast(session, input.device)
                resolved += sound.map { $0.json(refused: refusal(of: $0.rendition?.description, input.device)) }
                explanation += why
                continue
            }
            guard let decision = forecast(session, input.device) else { continue }
            explanation += decision.forecast
            if case .satisfied(let delivery)? = decision.outcome(of: CaptureParty(.session, id: session.id)) {
                let got = deliveries(session, input.device, delivery)
                resolved += got.map { $0.json(refused: refusal(of: $0.rendition?.description, input.device)) }
                explanation += got.compactMap(\.sentence)
            }
        }
        return (resolved + unserved.map(\.json), explanation + bandwidthSentences(session))
    }

    /// The decision for one of its devices if it were started, or changed like this.
    func forecast(_ session: CaptureSession, _ device: String) -> ArbiterDecision? {
        guard let worker = workers[device], let formats = worker.formats,
            session.input(device)?.mediaType == .video
        else { return nil }
        let entry = entries[session.id] ?? Entry(session)
        let others = claims(on: device).filter { $0.entry !== entry }
        return decision(device, worker, formats, [Claim(entry: entry, candidate: session)] + others, held(device))
    }

    /// What a device would deliver to a session that was started, or changed like this; nil: not known, or it would
    /// have to wait.
    func pixelFormat(_ session: CaptureSession, _ device: String) -> PixelFormat? {
        guard let decision = forecast(session, device),
            case .satisfied(let delivery)? = decision.outcome(of: CaptureParty(.session, id: session.id))
        else { return nil }
        return delivery.pixelFormat
    }

    private func refusal(of rendition: String?, _ device: String) -> String? {
        rendition.flatMap { workers[device]?.refusal(of: $0) }
    }

    private func stabilization(_ device: String) -> VideoStabilizationMode {
        VideoStabilizationMode(active: workers[device]?.stabilization)
    }

    func position(_ device: String) -> DevicePosition {
        workers[device]?.device.identity.position ?? .unspecified
    }

    /// How its pictures have to be turned to be upright.
    func orientation(_ device: String) -> PictureOrientation {
        guard let worker = workers[device] else { return .upright }
        // Pictures may say something else of themselves than their device.
        let known = worker.formatDescription.isNull ? worker.description : worker.formatDescription
        return known.map { PictureOrientation(described: $0) } ?? .upright
    }
}

extension SessionDelivery {
    /// Why it gets nothing, for people; nil: it gets something.
    fileprivate var sentence: String? { obstacle.map { "\(connection.output) gets nothing: \($0)." } }
}
