import BusProtocol
import BusServer
import CaptureCore
import FrameRing
import Glibc
import JSON
import LinuxIO
import ZeroMQ

/// The socket at which local readers get a device's rings: `media/<device>.ring`.
///
/// An open connection counts as a subscription. A reader that doesn't take what it is given loses its connection, so that
/// nobody can make this process hold on to old rings.
final class RingDoor {
    private final class Guest {
        let socket: PacketSocket
        var token: Loop.Token?
        var timer: Loop.Token?
        /// What it asked for, as it spelled it; nil before it did.
        var text: String?
        /// nil while what it asked for can't be made.
        var rendition: Rendition?
        /// The ring, or the reason, that it was told last.
        var told = ""
        /// Rings that were sent while others lay unread.
        var unread = 0

        init(_ socket: PacketSocket) { self.socket = socket }
    }

    private let loop: Loop
    private let listening: FileDescriptor
    private let path: String
    private var watch: Loop.Token?
    private var ledger: ConnectionLedger
    private var guests: [Int32: Guest] = [:]
    private var rings: [Rendition: RingWriter] = [:]
    /// Connections that were cut because their reader did not read.
    private(set) var cut: UInt64 = 0
    /// Somebody asks for a rendition, perhaps as the first.
    var onWish: (String) throws(BusError) -> Rendition = { text throws(BusError) in try Rendition(parsing: text) }
    /// The last one who had asked for it has gone.
    var onLeave: (Rendition) -> Void = { _ in }

    private static let maximumRequestBytes = 1024
    /// How long a client has to ask for a rendition.
    private static let patience: Int64 = 1000
    private static let acceptsPerTurn = 16

    init(
        _ loop: Loop, path: String, mode: UInt32, group: UInt32?, perUser: Int, total: Int
    ) throws(SystemError) {
        self.loop = loop
        self.path = path
        ledger = ConnectionLedger(perUser: perUser, total: total)
        listening = try UnixSocket.listen(at: path, .packets, mode: mode, group: group)
        listen()
    }

    deinit { File.remove(path) }

    /// Connections that are open.
    var count: Int { guests.count }

    // MARK: Rings

    /// Gives a new ring to all who want that rendition, and to those who come later.
    func offer(_ rendition: Rendition, _ ring: RingWriter) {
        rings[rendition] = ring
        for guest in guests.values where guest.rendition == rendition { give(ring, to: guest) }
    }

    /// There is no ring of that rendition any more.
    func withdraw(_ rendition: Rendition) { rings[rendition] = nil }

    /// Tells those who want that rendition why there is no ring; once, until there is another reason or a ring.
    func refuse(_ rendition: Rendition, _ error: BusError) {
        guard rings[rendition] == nil else { return }
        for guest in guests.values where guest.rendition == rendition { tell(error, to: guest) }
    }

    /// A place may have become free for those who were refused one.
    func retry() {
        for guest in guests.values where guest.rendition == nil && guest.text != nil { wish(guest) }
    }

    // MARK: Connections

    private func listen() {
        watch = loop.watch(.descriptor(listening.rawValue)) { [weak self] in self?.accept() }
    }

    private func accept() {
        do throws(SystemError) {
            for _ in 0..<Self.acceptsPerTurn {
                guard let descriptor = try UnixSocket.accept(listening.rawValue) else { return }
                admit(PacketSocket(owning: descriptor))
            }
        } catch {
            // No descriptor is left: who waits, waits, and this loop is not to turn for it.
            loop.cancel(watch)
            loop.schedule(afterMilliseconds: 1000) { [weak self] in self?.listen() }
        }
    }

    private func admit(_ socket: PacketSocket) {
        guard let peer = PeerCredentials(of: socket.rawValue),
            ledger.open(descriptor: socket.rawValue, uid: peer.uid, pid: peer.pid)
        else { return }
        let guest = Guest(socket)
        guests[socket.rawValue] = guest
        guest.token = loop.watch(.descriptor(socket.rawValue)) { [weak self, weak guest] in
            guard let self, let guest else { return }
            read(guest)
        }
        guest.timer = loop.schedule(afterMilliseconds: Self.patience) { [weak self, weak guest] in
            guard let self, let guest, guest.text == nil else { return }
            guest.text = Rendition.Encoding.native.rawValue
            wish(guest)
        }
    }

    private func read(_ guest: Guest) {
        let packet: Packet?
        do throws(SystemError) {
            packet = try guest.socket.receive(maximumBytes: Self.maximumRequestBytes)
        } catch {
            if error.code == EMSGSIZE { tell(.invalidParams("", "a request has 1024 bytes at most"), to: guest) }
            return close(guest)
        }
        guard let packet else { return }
        if packet.isEnd { return close(guest) }
        guard guest.text == nil else { return }
        guard let request = packet.bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }), request.object != nil else {
            tell(.invalidParams("", "a request is a JSON object"), to: guest)
            return close(guest)
        }
        guard let text = request["rendition"] == nil ? "native" : request["rendition"]?.string else {
            tell(.invalidParams("rendition", "a rendition is a text"), to: guest)
            return close(guest)
        }
        guest.text = text
        wish(guest)
    }

    private func wish(_ guest: Guest) {
        guard let text = guest.text else { return }
        do throws(BusError) {
            let rendition = try onWish(text)
            guest.rendition = rendition
            if let ring = rings[rendition] { give(ring, to: guest) }
        } catch {
            tell(error, to: guest)
            if error.reason == .invalidParams { close(guest) }
        }
    }

    private func give(_ ring: RingWriter, to guest: Guest) {
        let plan = ring.plan
        guard guest.told != plan.description.ring else { return }
        guest.told = plan.description.ring
        send(
            [
                "ring": .string(plan.description.ring), "size": JSONValue(plan.size),
                "slots": JSONValue(plan.description.slots), "slotBytes": JSONValue(plan.description.slotBytes),
                "keep": JSONValue(plan.description.keep),
            ], descriptor: ring.readerDescriptor, to: guest)
    }

    private func tell(_ error: BusError, to guest: Guest) {
        let word = error.reason.rawValue
        guard guest.told != word else { return }
        guest.told = word
        send(["error": error.headerJSON], descriptor: nil, to: guest)
    }

    private func send(_ message: JSONValue, descriptor: Int32?, to guest: Guest) {
        // What lies unread keeps its ring's memory: one may, and one more.
        guest.unread = guest.socket.hasUnread ? guest.unread + 1 : 0
        let isSent = guest.unread < 2 && (try? guest.socket.send(message.serialized, descriptor: descriptor)) == true
        guard !isSent else { return }
        cut += 1
        close(guest)
    }

    private func close(_ guest: Guest) {
        let descriptor = guest.socket.rawValue
        guard guests[descriptor] === guest else { return }
        guests[descriptor] = nil
        loop.cancel(guest.token)
        loop.cancel(guest.timer)
        _ = ledger.close(descriptor: descriptor)
        guard let rendition = guest.rendition, !guests.values.contains(where: { $0.rendition == rendition }) else {
            return
        }
        onLeave(rendition)
    }
}
