import FrameRing
import LinuxIO
import Testing

/// Frames that are found by where they lie.
struct RingMapTests {
    @Test("A frame is found where it lies, and is intact until its slot is taken again")
    func places() throws {
        let writer = try RingTests.writer(keep: 1)
        let ring = try RingMap(writer.readerDescriptor)
        #expect(ring.plan == writer.plan)
        let reader = try RingReader(writer.readerDescriptor)
        try RingTests.publish(writer, 1)
        let frame = try #require(reader.poll())
        let offset = ring.plan.pixels(frame.slot)
        let picture = try #require(ring.picture(slot: frame.slot, offset: offset, bytes: 4096, stamp: frame.stamp))
        #expect(picture.count == 4096 && picture.isIntact)
        #expect(picture.withUnsafeBytes { $0.count == 4096 && $0.bindMemory(to: UInt64.self).allSatisfy { $0 == 1 } })
        for number in 2...40 as ClosedRange<UInt64> { try RingTests.publish(writer, number) }
        #expect(!picture.isIntact)
        for (slot, offset, bytes, stamp) in [
            (-1, offset, 4096, frame.stamp), (Int.max, offset, 4096, frame.stamp), (9999, offset, 4096, frame.stamp),
            (frame.slot, offset + 1, 4096, frame.stamp), (frame.slot, .min, 4096, frame.stamp),
            (frame.slot, offset, 4095, frame.stamp), (frame.slot, offset, 4097, frame.stamp),
            (frame.slot, offset, .min, frame.stamp), (frame.slot, offset, .max, frame.stamp),
            (frame.slot, offset, 4096, 0), (frame.slot, offset, 4096, 3),
        ] {
            #expect(ring.picture(slot: slot, offset: offset, bytes: bytes, stamp: stamp) == nil)
        }
    }

    @Test("A picture outlives the ring's publisher and its map")
    func lifetime() throws {
        var picture: RingPicture?
        do {
            let writer = try RingTests.writer()
            try RingTests.publish(writer, 1)
            let reader = try RingReader(writer.readerDescriptor)
            let frame = try #require(reader.poll())
            let ring = try RingMap(writer.readerDescriptor)
            picture = ring.picture(
                slot: frame.slot, offset: ring.plan.pixels(frame.slot), bytes: 4096, stamp: frame.stamp)
        }
        let kept = try #require(picture)
        #expect(kept.withUnsafeBytes { $0.bindMemory(to: UInt64.self).allSatisfy { $0 == 1 } } && kept.isIntact)
    }
}
