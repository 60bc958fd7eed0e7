import BusProtocol
import Testing

@Suite struct FrameContinuityTests {
    @Test func goesOnWithAKeyFrameWhenTheLastOneCouldNotBeUsed() {
        var continuity = FrameContinuity()
        #expect(continuity.receive(stream: "a", sequence: 0, isKeyframe: true) == 0)
        continuity.interrupt()
        #expect(continuity.receive(stream: "a", sequence: 1, isKeyframe: false) == nil)
        #expect(continuity.receive(stream: "a", sequence: 2, isKeyframe: true) == 1)
        continuity.interrupt()
        #expect(continuity.receive(stream: "a", sequence: 3, isKeyframe: nil) == 0)
    }

    @Test func countsNoFurtherThanItCan() {
        var continuity = FrameContinuity()
        _ = continuity.receive(stream: "a", sequence: 0, isKeyframe: true)
        #expect(continuity.receive(stream: "a", sequence: .max - 1, isKeyframe: false) == nil)
        #expect(continuity.receive(stream: "a", sequence: .max, isKeyframe: false) == nil)
        #expect(continuity.receive(stream: "a", sequence: 5, isKeyframe: true) == 0)
    }
}
