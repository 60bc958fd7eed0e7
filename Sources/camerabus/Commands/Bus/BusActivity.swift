import JSON
import LinuxIO

/// The counters of the bus and its workers at one moment.
struct BusActivitySample {
    /// Monotonic nanoseconds.
    var time: Int64
    /// As `device.list` answers them.
    var devices: [JSONValue]
    /// Of `bus.metrics`.
    var counters: [String: JSONValue]

    fileprivate func count(_ name: String) -> Int64? { counters[name]?.integer }

    fileprivate func renditions(of device: String) -> [String] {
        let prefix = "worker_rendition_frames{device=\"\(device)\",rendition=\""
        return counters.keys.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count).dropLast(2)) }
            .sorted()
    }
}

/// The activity between two samples.
struct BusActivity {
    struct Device {
        var device: JSONValue
        /// Frames per second of the camera; nil: its worker reported nothing new.
        var frameRate: Double?
        /// Since the first sample: frames that the driver lost, that arrived damaged, and that there was no time for.
        var lost: Int64
        var damaged: Int64
        var leftOut: Int64
        var subscriptions: Int64
        /// Readers of its frames, by message or from shared memory.
        var readers: Int64
        /// The readers that use its shared memory.
        var sharedReaders: Int64
        /// Processors' worth of time: 1 is all of one.
        var load: Double?
        var residentBytes: Int64?
        var renditions: [(name: String, frameRate: Double?, leftOut: Int64)]
    }

    var devices: [Device]
    var busLoad: Double
    var busResidentBytes: Int64?
    var requestRate: Double
    var connections: Int64
    /// Monotonic nanoseconds.
    var time: Int64

    /// - Parameters:
    ///   - first: from which on losses are counted.
    ///   - before: from which on rates are.
    init(since first: BusActivitySample, from before: BusActivitySample, to now: BusActivitySample) {
        func grown(_ name: String, _ start: BusActivitySample) -> Int64 {
            guard let end = now.count(name) else { return 0 }
            // A process that was started anew counts from 0.
            guard let begin = start.count(name), begin <= end else { return end }
            return end - begin
        }
        func share(_ name: String, of span: Int64, times factor: Double = 1) -> Double? {
            span > 0 ? Double(grown(name, before)) * factor / Double(span) : nil
        }
        func perSecond(_ name: String, in span: Int64) -> Double? { share(name, of: span, times: 1e9) }
        devices = now.devices.map { device in
            let id = device["id"]?.string ?? ""
            let label = "{device=\"\(id)\"}"
            let damaged = grown("worker_damaged\(label)", first)
            // Workers report their counts at different times.
            let span = (now.count("worker_time\(label)") ?? 0) - (before.count("worker_time\(label)") ?? 0)
            return Device(
                device: device, frameRate: perSecond("worker_frames\(label)", in: span),
                lost: grown("worker_lost\(label)", first), damaged: damaged,
                leftOut: max(0, grown("worker_dropped\(label)", first) - damaged),
                subscriptions: now.count("worker_subscriptions\(label)") ?? 0,
                readers: now.count("worker_readers\(label)") ?? now.count("worker_subscriptions\(label)") ?? 0,
                sharedReaders: now.count("worker_ringReaders\(label)") ?? 0,
                load: share("worker_processorTime\(label)", of: span),
                residentBytes: now.count("worker_residentBytes\(label)"),
                renditions: now.renditions(of: id).map { name in
                    let label = "{device=\"\(id)\",rendition=\"\(name)\"}"
                    return (
                        name, perSecond("worker_rendition_frames\(label)", in: span),
                        grown("worker_rendition_dropped\(label)", first)
                    )
                })
        }
        let span = max(1, now.time - before.time)
        busLoad = share("processorTime", of: span) ?? 0
        busResidentBytes = now.count("residentBytes")
        requestRate = perSecond("requests_total", in: span) ?? 0
        connections = now.count("connections") ?? 0
        time = now.time
    }

    var json: JSONValue {
        [
            "monotonic": .integer(time),
            "bus": [
                "load": .number(busLoad), "residentBytes": busResidentBytes.map { .integer($0) } ?? .null,
                "requestRate": .number(requestRate), "connections": .integer(connections),
            ],
            "devices": .array(devices.map(\.json)),
        ]
    }

    /// For people.
    var lines: [String] {
        var table = Table(
            "ID", "STATE", "FORMAT", ">RATE", ">LOST", ">DAMAGED", ">LEFT OUT", ">READERS", ">CPU", ">MEMORY",
            "LOCKED BY")
        for device in devices {
            table.add(
                ValueText.plain(device.device["id"]), ValueText.state(device.device),
                ValueText.format(device.device["activeFormat"]), Self.tenths(device.frameRate), "\(device.lost)",
                "\(device.damaged)", "\(device.leftOut)",
                "\(device.readers)" + (device.sharedReaders > 0 ? " (\(device.sharedReaders) shared)" : ""),
                Self.percent(device.load),
                Self.mebibytes(device.residentBytes), ValueText.holder(device.device["lock"]?["holder"]))
            if let pressure = ValueText.pressure(device.device["systemPressureState"]) {
                table.note("under pressure: \(pressure)")
            }
            for rendition in device.renditions {
                table.note("\(rendition.name): \(Self.tenths(rendition.frameRate))/s, \(rendition.leftOut) left out")
            }
        }
        return [
            "Bus: \(Self.percent(busLoad)) CPU, \(Self.mebibytes(busResidentBytes)), "
                + "\(Self.tenths(requestRate)) requests/s, \(connections) connections",
            "",
        ] + table.lines
    }

    private static func percent(_ share: Double?) -> String { share.map { "\(tenths($0 * 100)) %" } ?? "-" }

    private static func mebibytes(_ bytes: Int64?) -> String { bytes.map { "\($0 >> 20) MiB" } ?? "-" }

    private static func tenths(_ value: Double?) -> String {
        guard let value else { return "-" }
        let tenths = (value * 10).rounded()
        guard tenths.isFinite, abs(tenths) < 1e15 else { return "-" }
        return "\(Int64(tenths) / 10).\(abs(Int64(tenths) % 10))"
    }
}

extension BusActivity.Device {
    fileprivate var json: JSONValue {
        [
            "id": device["id"] ?? .null, "state": .string(ValueText.state(device)),
            "systemPressureState": device["systemPressureState"] ?? .null,
            "activeFormat": device["activeFormat"] ?? .null, "frameRate": frameRate.map { .number($0) } ?? .null,
            "lost": .integer(lost),
            "damaged": .integer(damaged), "leftOut": .integer(leftOut), "subscriptions": .integer(subscriptions),
            "readers": .integer(readers), "sharedReaders": .integer(sharedReaders),
            "load": load.map { .number($0) } ?? .null, "residentBytes": residentBytes.map { .integer($0) } ?? .null,
            "renditions": .object(
                Dictionary(
                    renditions.map {
                        (
                            $0.name,
                            ["frameRate": $0.frameRate.map { .number($0) } ?? .null, "leftOut": .integer($0.leftOut)]
                        )
                    }
                ) { first, _ in first }),
        ]
    }
}
