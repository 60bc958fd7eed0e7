import JSON
import Testing

@testable import Gateway

/// Numbers as Prometheus reads them.
@Suite struct MetricsTextTests {
    private var text: String {
        var metrics = MetricsText()
        metrics.add(isUp: true)
        metrics.add(bus: [
            "counters": [
                "requests_total": 42, "worker_frames{device=\"cam0\"}": 7, "worker_ringReaders{device=\"cam0\"}": 2,
                "worker_processorTime{device=\"cam0\"}": 1_500_000_000,
            ],
            "histograms": ["request_seconds": ["bounds": [0.1, 1], "counts": [3, 2, 1], "sum": 4.5, "count": 6]],
        ])
        metrics.add(device: [
            "id": "cam\"0", "connected": true, "frameRate": 30, "worker": ["restarts": 1], "lock": .null,
        ])
        metrics.add(gateway: "web_requests_total", 5)
        return metrics.text
    }

    @Test func `each line is one of the format, and each name is explained before it`() throws {
        let sample =
            /[a-zA-Z_:][a-zA-Z0-9_:]*(\{[a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*"(,[a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*")*\})? ([0-9.eE+-]+|\+Inf|NaN)/
        var types: [String: String] = [:]
        var seen: Set<String> = []
        for line in text.split(separator: "\n") {
            if line.hasPrefix("# TYPE ") {
                let words = line.split(separator: " ")
                #expect(types[String(words[2])] == nil)
                types[String(words[2])] = String(words[3])
                continue
            }
            if line.hasPrefix("# HELP ") { continue }
            #expect(line.wholeMatch(of: sample) != nil, "\(line)")
            #expect(seen.insert(String(line.split(separator: " ").dropLast().joined())).inserted)
            let name = String(line.prefix { $0 != "{" && $0 != " " })
            let family = ["_bucket", "_sum", "_count"].compactMap {
                name.hasSuffix($0) ? String(name.dropLast($0.count)) : nil
            }
            #expect(types[name] != nil || family.contains { types[$0] == "histogram" }, "\(line)")
            if types[name] == "counter" { #expect(name.hasSuffix("_total"), "\(name)") }
        }
    }

    @Test func `the values are those that were told`() {
        for line in [
            "camerabus_up 1", "camerabus_requests_total 42", "camerabus_worker_frames_total{device=\"cam0\"} 7",
            "camerabus_worker_ring_readers{device=\"cam0\"} 2",
            "camerabus_worker_processor_seconds_total{device=\"cam0\"} 1.5",
            "camerabus_request_seconds_bucket{le=\"1\"} 5", "camerabus_request_seconds_bucket{le=\"+Inf\"} 6",
            "camerabus_request_seconds_sum 4.5", "camerabus_device_frame_rate{device=\"cam\\\"0\"} 30",
            "camerabus_device_locked{device=\"cam\\\"0\"} 0", "camerabus_gateway_web_requests_total 5",
        ] {
            #expect(text.split(separator: "\n").contains { $0 == line }, "\(line)")
        }
    }
}
