import BusProtocol
import JSON
import Logging
import NIOCore
import ZeroMQ

/// `/camera/<id>.jpg`, the current picture, and `/camera/<id>.mjpg`, pictures one after the other as long as the client
/// reads.
struct CameraPictures {
    typealias Respond = (WebResponse) async throws -> Bool

    let busAccess: WebBusAccess
    let stream: WebStream

    /// Seconds that a first picture may take: a camera may have to be opened.
    private static let patience = 8

    func answer(_ request: WebRequest, _ visitor: WebAuthorization.Visitor, _ respond: Respond) async throws -> Bool {
        let name = request.path[1]
        let isMoving = name.hasSuffix(".mjpg")
        guard isMoving || name.hasSuffix(".jpg"), let dot = name.lastIndex(of: ".") else {
            return try await respond(WebResponse(404, "Not found."))
        }
        let device = String(name[..<dot])
        guard DeviceID.isValid(device), let rendition = Self.rendition(request.query, isMoving: isMoving) else {
            return try await respond(
                WebResponse(
                    DeviceID.isValid(device) ? 400 : 404,
                    "width and height must be whole numbers up to 16384, fps a rate such as 10 or 30000/1001, crop "
                        + "WIDTHxHEIGHT+X+Y. rendition stands alone and is jpeg, as in "
                        + "rendition=jpeg:640x360,rotate=90."))
        }
        switch await busAccess.ask("device.get", ["device": .string(device)], of: visitor) {
        case .failure(let error):
            return try await respond(WebResponse(error.reason == .deviceNotFound ? 404 : 503, error.message))
        case .success: break
        }
        let topicStream = await WebTopicStream.open(
            busAccess, topic: Topic.frame(device, rendition).bytes, for: visitor)
        defer { topicStream.close() }
        let patience = Task {
            try await Task.sleep(for: .seconds(Self.patience))
            topicStream.close()
        }
        let first = await topicStream.next()
        patience.cancel()
        guard let first else {
            return try await respond(
                WebResponse(503, "The camera delivered no picture within \(Self.patience) seconds."))
        }
        guard first.frames.count > 1 else { return try await respond(Self.refusal(first)) }
        guard isMoving else {
            return try await respond(WebResponse(200, type: "image/jpeg", body: Self.picture(in: first)))
        }
        let response = WebResponse(200, type: Multipart.type)
        guard request.method == "GET" else { return try await respond(response) }
        stream.whenEnded { topicStream.close() }
        try await stream.begin(response, bodyBytes: nil, for: request)
        try await stream.send(Multipart.start)
        var next: Outgoing? = first
        while let outgoing = next {
            if let error = Self.error(outgoing), error.reason == .unauthorized {
                busAccess.logger.notice(
                    "a stream of pictures ended: its user may not see it any more",
                    metadata: ["name": "\(visitor.principal.name)", "reason": "\(error.message)"])
                try await stream.send(Multipart.end(error.message))
                break
            }
            let picture = Self.picture(in: outgoing)
            if picture.readableBytes > 0 { try await stream.send(Multipart.part(picture)) }
            topicStream.wrote(outgoing)
            next = await topicStream.next()
        }
        return false
    }

    private static func picture(in outgoing: Outgoing) -> ByteBuffer {
        var picture = ByteBufferAllocator().buffer(capacity: outgoing.bytes)
        for frame in outgoing.frames.dropFirst() { picture.write(frame) }
        return picture
    }

    /// As the query says: width and height are bounds, as a page does not know what a camera has just now. nil: it says
    /// what can't be.
    static func rendition(_ query: [String: String], isMoving: Bool) -> String? {
        func number(_ name: String) -> Int?? {
            guard let text = query[name] else { return .some(nil) }
            guard let number = Int(text), (0...16384).contains(number), "\(number)" == text else { return nil }
            return .some(number)
        }
        if let wish = query["rendition"].map(Rendition.spelled) {
            // It says all of it.
            guard query.keys.allSatisfy({ $0 == "rendition" }), let rendition = try? Rendition(parsing: wish),
                rendition.encoding == .jpeg
            else { return nil }
            return rendition.description
        }
        guard let width = number("width"), let height = number("height") else { return nil }
        var text = "jpeg"
        let isBounded = width ?? 0 > 0 || height ?? 0 > 0
        if isBounded { text += ":\(width ?? 0)x\(height ?? 0)" }
        var rate: FrameRate?
        if isMoving, let wish = query["fps"] {
            guard let read = try? FrameRate(wish), read.framesPerSecond <= Double(Rendition.maxRate) else { return nil }
            rate = read
        }
        if let crop = query["crop"] {
            // A form's plus is a space.
            let crop = String(crop.map { $0 == " " ? "+" : $0 })
            guard !crop.contains(";") else { return nil }
            text += ";crop=\(crop)"
        }
        if isBounded { text += ";fit" }
        guard var rendition = try? Rendition(parsing: text) else { return nil }
        rendition.rateMillionths = rate?.millionths
        return rendition.description
    }

    /// Why a message has no picture; nil: it has one, or does not say why.
    private static func error(_ outgoing: Outgoing) -> BusError? {
        guard outgoing.frames.count == 1, let header = outgoing.frames.first else { return nil }
        return (try? JSONValue(parsing: Array(header.bytes)))?["error"].map { BusError(header: $0) }
    }

    private static func refusal(_ outgoing: Outgoing) -> WebResponse {
        guard let error = error(outgoing) else { return WebResponse(503, "The camera delivers no pictures.") }
        let status =
            switch error.reason {
            case .formatUnsupported, .invalidParams: 400
            case .deviceNotFound: 404
            case .unauthorized: 403
            default: 503
            }
        return WebResponse(status, error.message)
    }
}
