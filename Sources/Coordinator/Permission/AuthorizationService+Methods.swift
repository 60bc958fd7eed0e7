import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// `authorization.*`
extension AuthorizationService: MethodService {
    var methods: [String: Handler] {
        [
            "authorization.status": .plain(status), "authorization.request": .plain(request),
            "authorization.list": .plain(list), "authorization.grant": .plain(grant),
            "authorization.deny": .plain(deny), "authorization.reset": .plain(reset),
        ]
    }

    /// The caller's permission, by medium.
    func authorizations(of caller: Caller, _ media: [AuthorizationMedia] = AuthorizationMedia.allCases) -> JSONValue {
        .object(
            Dictionary(
                media.map { ($0.rawValue, .string(authorization(of: caller, $0).rawValue)) },
                uniquingKeysWith: { first, _ in first }))
    }

    private func status(_ call: Call, _ respond: @escaping Responder) {
        let media = call.media.isEmpty ? AuthorizationMedia.allCases : call.media
        let asked = table.questions[call.caller.peer.uid] ?? [:]
        respond(
            .success([
                "uid": JSONValue(call.caller.peer.uid), "role": .string(role(of: call.caller).rawValue),
                "authorization": authorizations(of: call.caller, media),
                "asked": JSONValue(media.filter { asked[$0] != nil }.map(\.rawValue)),
            ]))
    }

    private func request(_ call: Call, _ respond: @escaping Responder) {
        guard let media = call.media.first else { return respond(.failure(.invalidParams("media", "is needed"))) }
        let reason = (call.string("reason") ?? "")
        // An administrator reads it on a terminal.
        guard reason.unicodeScalars.allSatisfy({ !$0.properties.isDefaultIgnorableCodePoint && $0.isPrintable }) else {
            return respond(.failure(.invalidParams("reason", "must be one line of text, without control characters")))
        }
        guard reason.unicodeScalars.contains(where: { !$0.properties.isWhitespace }) else {
            return respond(
                .failure(
                    .invalidParams(
                        "reason",
                        "must say why permission is needed: an administrator "
                            + "reads it")))
        }
        let ticket = ask(
            call.caller, startTime: clients.holder(call.caller).startTime, media, reason: reason,
            program: clients.programName(call.caller), wait: call.duration("wait") ?? 0
        ) { result in
            respond(
                result.map { ["media": .string(media.rawValue), "status": .string($0.rawValue)] })
        }
        if let ticket { cancellations.set(call.key) { [weak self] in self?.cancel(ticket) } }
    }

    private func list(_ call: Call, _ respond: @escaping Responder) {
        var requests: [(since: Int64, uid: UInt32, json: JSONValue)] = []
        for (uid, questions) in table.questions {
            for (media, question) in questions {
                requests.append(
                    (
                        question.since, uid,
                        [
                            "uid": JSONValue(uid), "media": .string(media.rawValue),
                            "reason": question.reason.map(JSONValue.string) ?? .null, "pid": JSONValue(question.pid),
                            "program": .string(question.program), "since": JSONValue(question.since),
                        ]
                    ))
            }
        }
        var decisions: [JSONValue] = []
        for (uid, decided) in table.decisions.sorted(by: { $0.key < $1.key }) {
            for media in AuthorizationMedia.allCases {
                guard let decision = decided[media] else { continue }
                decisions.append([
                    "uid": JSONValue(uid), "media": .string(media.rawValue),
                    "status": .string(decision.status.rawValue), "once": .bool(decision.isOnce),
                    "by": JSONValue(decision.by), "since": JSONValue(decision.since),
                ])
            }
        }
        requests.sort { ($0.since, $0.uid) < ($1.since, $1.uid) }
        respond(.success(["requests": .array(requests.map(\.json)), "decisions": .array(decisions)]))
    }

    private func grant(_ call: Call, _ respond: @escaping Responder) { decide(call, isGranted: true, respond) }

    private func deny(_ call: Call, _ respond: @escaping Responder) { decide(call, isGranted: false, respond) }

    private func decide(_ call: Call, isGranted: Bool, _ respond: @escaping Responder) {
        let (uid, media) = (call.uid, call.media)
        decide(
            uid: uid, media, isGranted: isGranted, isOnce: call.params["once"]?.bool ?? false, by: call.caller
        ) { result in
            respond(result.map { Self.decided(uid, media).marked(isKept: $0) })
        }
    }

    private func reset(_ call: Call, _ respond: @escaping Responder) {
        let uid = call.uid
        reset(uid: uid, call.media.isEmpty ? AuthorizationMedia.allCases : call.media, by: call.caller) {
            media, isKept in respond(.success(Self.decided(uid, media).marked(isKept: isKept)))
        }
    }

    private static func decided(_ uid: UInt32, _ media: [AuthorizationMedia]) -> JSONValue {
        ["uid": JSONValue(uid), "media": JSONValue(media.map(\.rawValue))]
    }
}

extension Call {
    /// The media that are named; a bare string is one.
    fileprivate var media: [AuthorizationMedia] {
        let named = strings("media").compactMap(AuthorizationMedia.init)
        return AuthorizationMedia.allCases.filter(named.contains)
    }

    // The method's schema sees to it that there is one.
    fileprivate var uid: UInt32 { params["uid"]?.integer.flatMap { UInt32(exactly: $0) } ?? .max }
}

extension Unicode.Scalar {
    fileprivate var isPrintable: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse, .format: false
        default: true
        }
    }
}
