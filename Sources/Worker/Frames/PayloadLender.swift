import BusProtocol
import Delivery
import FrameRing
import ZeroMQ

/// Makes payloads of frames in a ring: a few are lent to libzmq as they lie there, the others are copied.
///
/// A subscriber that is stopped holds what was on its way to it for as long as it stands still. So only a few slots of
/// a ring are lent at a time, and what is held beside is counted.
final class PayloadLender {
    /// Slots of one ring that are lent at a time.
    static let slots = 4

    let memory: PayloadMemory
    // Rings in which no frames come any more, while something of them is lent: that keeps all of their memory.
    private var ended: [RingWriter] = []

    init(_ memory: PayloadMemory) { self.memory = memory }

    /// Makes the message's bytes those of a frame in the ring.
    ///
    /// - Returns: false when as much is held as may be.
    func fill(_ message: Message, from ring: RenditionRing, _ publication: RenditionRing.Publication) -> Bool {
        sweep()
        let slot = publication.place.slot
        if let loan = ring.lend(slot) {
            let bytes = UnsafeRawBufferPointer(rebasing: loan.bytes[..<publication.bytes])
            return (try? message.borrow(bytes, from: loan)) != nil
        }
        return memory.fill(message, count: publication.bytes) { room in
            room.copyMemory(from: UnsafeRawBufferPointer(rebasing: ring.writer.pixels(of: slot)[..<room.count]))
        }
    }

    /// No frames come in that ring any more.
    func end(_ ring: RingWriter) {
        sweep()
        guard ring.lentCount > 0, !ended.contains(where: { $0 === ring }) else { return }
        ended.append(ring)
        memory.add(ring.plan.size)
    }

    /// Whether nothing of a ring is lent that was said to have ended.
    func isFree(_ ring: RingWriter) -> Bool {
        sweep()
        return !ended.contains { $0 === ring }
    }

    /// Bytes that subscribers hold beside the rings in use.
    var held: Int {
        sweep()
        return memory.held
    }

    private func sweep() {
        guard !ended.isEmpty else { return }
        ended.removeAll { ring in
            guard ring.lentCount == 0 else { return false }
            memory.giveBack(ring.plan.size)
            return true
        }
    }
}
