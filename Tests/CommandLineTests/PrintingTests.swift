import BusProtocol
import CameraBusTesting
import Doctor
import JSON
import LinuxIO
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

    @Test func `who uses a device is told in rows`() {
        let holder: JSONValue = ["name": "sh", "pid": 12, "uid": 1000]
        let used: JSONValue = [
            "device": "cam0", "node": "/dev/video0",
            "lock": ["holder": holder, "since": .null, "note": "a note"],
            "waiters": [["holder": holder, "devices": ["cam0"], "note": .null]],
            "subscribers": [["name": "py\u{1B}[2J", "pid": 7, "uid": 0, "renditions": ["jpeg", "native"]]],
            "foreign": [["name": "ffmpeg", "pid": 9, "uid": 0]], "complete": true,
        ]
        let free: JSONValue = ["device": .null, "node": "/dev/video1", "complete": true]
        let unseen: JSONValue = ["device": "cam2", "complete": false]
        #expect(
            WhoCommand.table([used, free, unseen]).lines == [
                "DEVICE       WHAT            WHO                    DETAILS",
                "cam0         locked          sh (pid 12, uid 1000)  for -: a note",
                "cam0         waits           sh (pid 12, uid 1000)  for the lock",
                "cam0         streams         py\u{FFFD}[2J (pid 7, uid 0)  jpeg, native",
                "cam0         foreign         ffmpeg (pid 9, uid 0)  has /dev/video0 open",
                "/dev/video1  free", "cam2         free, it seems",
            ])
    }

    @Test func `traffic is what went by, also where a worker was started anew`() {
        func sample(_ time: Int64, _ counts: [String: Int64]) -> BusActivitySample {
            var counters: [String: JSONValue] = ["requests_total": .integer(time / 100_000_000), "processorTime": 0]
            for (name, count) in counts { counters[name] = .integer(count) }
            return BusActivitySample(time: time, devices: [["id": "cam0", "isStreaming": true]], counters: counters)
        }
        func worker(_ time: Int64, _ frames: Int64, _ dropped: Int64, _ damaged: Int64) -> [String: Int64] {
            let label = "{device=\"cam0\"}"
            let rendition = "{device=\"cam0\",rendition=\"jpeg:640x360\"}"
            return [
                "worker_time\(label)": time, "worker_frames\(label)": frames, "worker_dropped\(label)": dropped,
                "worker_damaged\(label)": damaged, "worker_lost\(label)": 0, "worker_subscriptions\(label)": 2,
                "worker_readers\(label)": 5, "worker_ringReaders\(label)": 2,
                "worker_processorTime\(label)": time / 10, "worker_residentBytes\(label)": 30 << 20,
                "worker_rendition_frames\(rendition)": frames, "worker_rendition_dropped\(rendition)": dropped,
            ]
        }
        let first = sample(0, worker(0, 100, 7, 5))
        let before = sample(2_000_000_000, worker(1_900_000_000, 130, 8, 5))
        let now = sample(4_000_000_000, worker(3_900_000_000, 190, 10, 6))
        let traffic = BusActivity(since: first, from: before, to: now)
        #expect(
            traffic.lines == [
                "Bus: 0.0 % CPU, -, 10.0 requests/s, 0 connections", "",
                "ID    STATE      FORMAT  RATE  LOST  DAMAGED  LEFT OUT       READERS     CPU  MEMORY  LOCKED BY",
                "cam0  streaming  -       30.0     0        1         2  5 (2 shared)  10.0 %  30 MiB  -",
                "    jpeg:640x360: 30.0/s, 3 left out",
            ])
        #expect(traffic.json["devices"]?[0]?["frameRate"]?.double == 30)
        let anew = BusActivity(since: first, from: now, to: sample(6_000_000_000, worker(5_900_000_000, 60, 0, 0)))
        #expect(anew.devices.first?.frameRate == 30 && anew.devices.first?.leftOut == 0)
        let stale = BusActivity(since: first, from: now, to: now)
        #expect(stale.devices.first?.frameRate == nil && stale.json["devices"]?[0]?["load"] == .null)
    }

    @Test func `what the bus could not see is added, its own worker left out`() {
        let usage: JSONValue = [
            "node": "/dev/video0", "foreign": [["pid": 5, "uid": 0, "name": "a"]], "complete": false,
        ]
        let seen = ProcessTable.Holders(
            processes: [5, 6, 7].map { DeviceHolder(pid: $0, uid: 1, name: "x") }, isComplete: true)
        let merged = ForeignHolders.merged(usage, seen, worker: 6)
        #expect(merged["foreign"]?.array?.compactMap { $0["pid"]?.integer } == [5, 7])
        #expect(merged["complete"] == true)
    }

    @Test func `a check is a line, and its findings stand below with their commands`() {
        let finding = Finding("a-fault", "/dev/x", meaning: "It is broken.", remedy: "mend it", advice: "Twice.")
        #expect(
            DoctorCommand.lines(CheckResult(check: "c", outcome: .faulty([finding], notes: ["n"]))) == [
                "✗ c: 1 finding", "    a-fault /dev/x", "      It is broken.", "      $ mend it", "      Twice.",
                "    note: n",
            ])
        #expect(DoctorCommand.lines(CheckResult(check: "c", outcome: .healthy("fine"))) == ["✓ c: fine"])
        #expect(DoctorCommand.lines(CheckResult(check: "c", outcome: .skipped("none"))) == ["– c: none"])
    }

    @Test func `names can't steer the terminal`() {
        var table = Table("NAME")
        table.add("\u{1B}[2Jx\ny\u{202E}")
        #expect(table.lines.last == "\u{FFFD}[2Jx\u{FFFD}y\u{FFFD}")
    }

    @Test func `devices are told in words`() {
        func state(_ members: [String: JSONValue]) -> String {
            let device = (FakeBus.device("cam0").object ?? [:]).merging(members) { $1 }
            return ValueText.state(.object(device))
        }
        #expect(state([:]) == "closed")
        #expect(state(["isOpen": true]) == "open")
        #expect(state(["isOpen": true, "isStreaming": true]) == "streaming")
        #expect(state(["connected": false, "isOpen": true]) == "disconnected")
        #expect(state(["error": ["reason": "deviceInUse", "message": ""]]) == "deviceInUse")
        #expect(state(["worker": ["state": "restarting"]]) == "restarting")
        let locked: JSONValue = ["holder": ["name": "sh", "pid": 12, "uid": 1000]]
        #expect(ValueText.holder(locked["holder"]) == "sh (pid 12, uid 1000)")
    }

    @Test func `numbers have no digits that say nothing`() {
        #expect([30, 29.97, 7.5, 0.05, 1e300].map(ValueText.rate) == ["30", "29.97", "7.5", "0.05", "-"])
        #expect([-0.5, -2, -1.25, -0.001].map(ValueText.rate) == ["-0.5", "-2", "-1.25", "0"])
        #expect(ValueText.rate(ofDuration: "1001/30000") == "29.97")
        #expect(ValueText.rate(ofDuration: nil) == "-")
        let second: Int64 = 1_000_000_000
        #expect(
            [5, 150, 7300, 200_000].map { ValueText.age(0, now: $0 * second) } == ["5 s", "2 min", "2 h", "2 d"])
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
