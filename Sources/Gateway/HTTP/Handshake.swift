import FlyingFox
import FoundationEssentials

/// The handshake of a WebSocket, which FlyingFox answers.
enum Handshake {
    /// The lines of the answer's head, or nil where the request is none that asks for a WebSocket (RFC 6455, section
    /// 4.2).
    static func answer(to request: WebRequest) async -> [String]? {
        var headers: [HTTPHeader: String] = [:]
        for name in ["host", "upgrade", "connection", "sec-websocket-key", "sec-websocket-version"] {
            if let value = request[name] { headers[HTTPHeader(name)] = value }
        }
        let handler = WebSocketHTTPHandler(handler: Nobody())
        let asked = HTTPRequest(
            method: HTTPMethod(request.method), version: .http11, path: "/bus", query: [], headers: headers,
            body: .init())
        guard let answer = try? await handler.handleRequest(asked), answer.statusCode == .switchingProtocols,
            let accept = answer.headers[.webSocketAccept]
        else { return nil }
        return ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: \(accept)"]
    }

    /// The frames are ours to read and write, with bounds that FlyingFox hasn't.
    private struct Nobody: WSHandler {
        func makeFrames(for client: AsyncThrowingStream<WSFrame, any Error>) async throws -> AsyncStream<WSFrame> {
            AsyncStream { $0.finish() }
        }
    }
}
