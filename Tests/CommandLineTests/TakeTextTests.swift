import BusClient
import JSON
import Testing

@testable import camerabus

/// What the command line makes of takes.
@Suite struct TakeTextTests {
    private func take(_ members: [String: JSONValue]) -> TakeState {
        let segment: JSONValue = ["id": "m1", "path": "/v/a-1.mp4", "duration": 3100]
        let usual: [String: JSONValue] = [
            "id": "t1", "state": "paused", "segments": [segment], "duration": 0, "total": 3100, "remaining": .null,
        ]
        return TakeState(.object(usual.merging(members) { $1 }))
    }

    @Test func `lines that are typed are understood`() {
        let typed = ["": TakeKey.toggle, " d": .deleteLast, "F": .finish, "x\r": .discard, "dd": .unknown]
        for (line, key) in typed { #expect(TakeKey(line) == key, "\(line)") }
    }

    @Test func `how far a take is stands in a line`() {
        #expect(TakeText.progress(take(["segments": [], "total": 0])) == "nothing is recorded yet")
        #expect(TakeText.progress(take([:])) == "1 segment  0:03.1 in all")
        let recording = take([
            "state": "recording", "segment": "m2", "duration": 1200, "total": 4300, "remaining": 10700,
        ])
        #expect(TakeText.progress(recording) == "segment 2  0:01.2  0:04.3 in all  0:10.7 left")
        #expect(TakeText.progress(take(["state": "finishing"])) == "joining")
        #expect(TakeText.joining(0.429) == "joining 42 %")
    }

    @Test func `how a segment ended is told once`() throws {
        let event: JSONValue = [
            "event": "didEndSegment", "segment": "m1", "path": "/v/a-1.mp4", "reason": "stopped", "success": true,
            "error": .null, "kept": true, "duration": 3100, "total": 6200, "remaining": 8800,
        ]
        #expect(TakeText.remark("didEndSegment", event) == "0:03.1, 0:06.2 in all, 0:08.8 left.")
        let lost: JSONValue = [
            "segment": "m1", "reason": "deviceLost", "success": false, "error": ["message": "cam0 is gone."],
            "kept": false, "duration": 0, "total": 3100, "remaining": .null,
        ]
        #expect(
            TakeText.ended(try SegmentEnding(lost)) == "deviceLost: cam0 is gone. The segment was not kept.")
        #expect(throws: ClientError.self) { try SegmentEnding(["total": 1]) }
        #expect(TakeText.remark("recordProgress", ["total": 1]) == nil)
        let short: JSONValue = ["total": 6200, "minDuration": 10_000]
        #expect(
            TakeText.remark("recordDurationLessMinRecordDuration", short)
                == "The take is shorter than its minimum of 0:10.0.")
    }

    @Test func `what stays is told how to go on with`() {
        let advice = InteractiveTake.advice(take([:]))
        #expect(advice.contains("with one segment") && advice.contains("camerabus take finish t1"))
    }

    @Test func `lists have a line for each`() {
        let state = take(["device": "cam0", "microphone": "mic0", "name": "belt", "remaining": 11900])
        let lines = TakeText.table([state]).lines
        #expect(lines.count == 2 && lines[1].contains("cam0, mic0") && lines[1].contains("0:11.9"))
        #expect(TakeText.table(state.segments).lines.last == "m1       0:03.1  /v/a-1.mp4")
    }
}
