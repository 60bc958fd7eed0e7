import ZeroMQ

/// A connection that has become a WebSocket: it passes messages of the page to its session, and writes those of the
/// session.
struct WebSocketConnection {
    let busAccess: WebBusAccess
    let stream: WebStream
    let session: WebSession

    /// Serves until one of both ends.
    ///
    /// - Parameter buffered: what has come behind the handshake already.
    func serve(_ buffered: [UInt8]) async {
        // On the loop alone it is sure whether its token was taken away since it was let in.
        let isOpen: Bool = await busAccess.mailbox.ask { tell in tell(!stream.isShutDown && session.open()) }
        if isOpen {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await write() }
                if await read(buffered) {
                    // What is said last gets there before the end, where the other end takes it.
                    await stream.drained()
                }
                session.outbox.end()
                stream.shutDown()
            }
        }
        await busAccess.mailbox.ask { tell in tell(session.close()) }
    }

    private func write() async {
        while let next = await session.outbox.next() {
            do { try await stream.send(next) } catch { return stream.shutDown() }
            session.outbox.wrote(next)
            if next.isMedia { busAccess.mailbox.post { session.room() } }
        }
        stream.finish()
    }

    /// - Returns: whether something was said last.
    private func read(_ buffered: [UInt8]) async -> Bool {
        var reader = WebSocketReader()
        reader.take(buffered)
        do {
            while true {
                while let event = try reader.next() {
                    // The next is not read before this one is taken.
                    switch event {
                    case .text(let bytes):
                        let goesOn: Bool = await busAccess.mailbox.ask { tell in tell(session.take(text: bytes)) }
                        guard goesOn else { return false }
                    case .binary(let bytes):
                        let goesOn: Bool = await busAccess.mailbox.ask { tell in session.take(binary: bytes, then: tell)
                        }
                        guard goesOn else { return false }
                    case .ping(let bytes): put(.pong, bytes)
                    case .close: return end(1000)
                    }
                }
                reader.take(try await stream.read())
            }
        } catch let violation as WebSocketFrame.Violation {
            return end(violation.rawValue)
        } catch {
            // The other end has gone.
            return false
        }
    }

    private func put(_ opcode: WebSocketFrame.Opcode, _ payload: [UInt8]) {
        _ = session.outbox.put(Outgoing(head: WebSocketFrame.head(opcode, payloadBytes: payload.count) + payload))
    }

    /// Says why it ends, as far as the other end still reads.
    private func end(_ code: UInt16) -> Bool {
        put(.close, WebSocketFrame.closing(code))
        session.outbox.end(dropping: false)
        return true
    }
}
