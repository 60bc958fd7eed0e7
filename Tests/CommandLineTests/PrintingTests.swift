import BusProtocol
import CameraBusTesting
import JSON
import Testing

@testable import camerabus

@Suite struct PrintingTests {
    @Test func `columns are aligned`() {
        var table = Table("ID", ">RATE", "STATE")
        table.add("cam0", "7.5", "open")
        table.add("a-longer-one", "30", "")
        table.note("0: Bars")
        #expect(
            table.lines == [
                "ID            RATE  STATE", "cam0           7.5  open", "a-longer-one    30", "    0: Bars",
            ])
    }

    @Test func `names can't steer the terminal`() {
        var table = Table("NAME")
        table.add("\u{1B}[2Jx\ny\u{202E}")
        #expect(table.lines.last == "\u{FFFD}[2Jx\u{FFFD}y\u{FFFD}")
    }

    @Test func `devices are told in words`() {
        func state(_ members: [String: JSONValue]) -> String {
            let device = (FakeBus.device("cam0").object ?? [:]).merging(members) { $1 }
            return Describing.state(.object(device))
        }
        #expect(state([:]) == "closed")
        #expect(state(["isOpen": true]) == "open")
        #expect(state(["isOpen": true, "isStreaming": true]) == "streaming")
        #expect(state(["connected": false, "isOpen": true]) == "disconnected")
        #expect(state(["error": ["reason": "deviceInUse", "message": ""]]) == "deviceInUse")
        #expect(state(["worker": ["state": "restarting"]]) == "restarting")
        let locked: JSONValue = ["holder": ["name": "sh", "pid": 12, "uid": 1000]]
        #expect(Describing.holder(locked["holder"]) == "sh (pid 12, uid 1000)")
    }

    @Test func `numbers have no digits that say nothing`() {
        #expect([30, 29.97, 7.5, 0.05, 1e300].map(Describing.rate) == ["30", "29.97", "7.5", "0.05", "-"])
        #expect(Describing.rate(ofDuration: "1001/30000") == "29.97")
        #expect(Describing.rate(ofDuration: nil) == "-")
        let second: Int64 = 1_000_000_000
        #expect(
            [5, 150, 7300, 200_000].map { Describing.age(0, now: $0 * second) } == ["5 s", "2 min", "2 h", "2 d"])
    }

    @Test func `formats of every kind have a row`() {
        let discrete: JSONValue = [
            "id": "f1", "pixelFormat": "YUYV", "title": "YUYV 4:2:2", "width": 640, "height": 480, "sizes": .null,
            "frameRates": [
                ["minFrameDuration": "1/30", "maxFrameDuration": "1/30"],
                ["minFrameDuration": "1/15", "maxFrameDuration": "1/1"],
            ],
        ]
        let stepwise: JSONValue = [
            "id": "f2", "pixelFormat": "MJPG", "title": "", "width": 1920, "height": 1080,
            "sizes": [
                "minWidth": 32, "maxWidth": 1920, "stepWidth": 8, "minHeight": 32, "maxHeight": 1080, "stepHeight": 2,
            ],
            "frameRates": [],
        ]
        #expect(
            FormatsCommand.table([discrete, stepwise], active: "f1").lines == [
                "   ID  PIXELS  SIZE                    RATES     NAME",
                "*  f1  YUYV    640x480                 30, 1–15  YUYV 4:2:2",
                "   f2  MJPG    32x32–1920x1080 by 8x2  -",
            ])
    }

    @Test func `menus stand below their control, in order`() {
        let control: JSONValue = [
            "name": "test_pattern", "type": "menu", "minimum": 0, "maximum": 10, "step": 1, "defaultValue": 0,
            "value": 2, "flags": ["inactive", "slider"],
            "menu": [["index": 0, "name": "Off"], ["index": 2, "name": "Bars"], ["index": 10, "value": 5]],
        ]
        #expect(
            ControlsCommand.table([control]).lines == [
                "NAME          TYPE  MIN  MAX  STEP  DEFAULT  VALUE  FLAGS",
                "test_pattern  menu    0   10     1        0      2  inactive, slider", "    0: Off", "    2: Bars",
                "    10: 5",
            ])
    }

    @Test func `JSON for people is indented`() {
        let value: JSONValue = ["b": [1, ["c": .null]], "a": [:], "d": []]
        #expect(
            value.indented
                == "{\n  \"a\": {},\n  \"b\": [\n    1,\n    {\n      \"c\": null\n    }\n  ],\n  \"d\": []\n}")
    }

    @Test func `people see what matters of a message`() {
        #expect(WatchCommand.content(["epoch": "e", "sequence": 1, "previous": 0, "value": ["x": 1]]) == ["x": 1])
        #expect(
            WatchCommand.content(["epoch": "e", "sequence": 1, "previous": 0, "event": "lost", "by": 2])
                == ["event": "lost", "by": 2])
        #expect(WatchCommand.content(["epoch": "e", "monotonic": 1]) == ["epoch": "e", "monotonic": 1])
    }
}
