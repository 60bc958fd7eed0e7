import BusProtocol
import CameraBusTesting
import JSON
import Testing

/// `frame-continuity.json`.
@Suite struct FrameContinuityTests {
    @Test(arguments: Vectors.cases("frame-continuity"))
    func continuity(_ vector: VectorCase) throws {
        var continuity = FrameContinuity()
        for step in try #require(vector.json["steps"]?.array) {
            let lost = continuity.receive(
                stream: try #require(step["stream"]?.string),
                sequence: UInt64(try #require(step["sequence"]?.integer)), isKeyframe: step["keyframe"]?.bool)
            #expect(lost.map { JSONValue($0) } ?? .null == step["lost"], "\(step)")
        }
    }
}
