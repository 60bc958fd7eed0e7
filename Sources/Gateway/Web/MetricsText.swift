import JSON

/// The counters of the bus and the gateway, in the text format 0.0.4 of Prometheus.
struct MetricsText {
    private struct Family {
        var type: String
        var help: String
        var samples: [String] = []
    }

    private var families: [String: Family] = [:]

    /// Values that go up and down; all others of the bus only go up.
    private static let gauges: Set<String> = [
        "worker_connections", "worker_subscriptions", "worker_readers", "worker_ringReaders", "worker_heldBytes",
        "worker_residentBytes",
    ]

    /// Takes in what `bus.metrics` answered.
    mutating func add(bus metrics: JSONValue) {
        for (key, value) in metrics["counters"]?.object ?? [:] {
            guard let number = value.double else { continue }
            let (name, labels) = Self.split(key)
            if name.hasSuffix("processorTime") || name == "worker_time" {
                let isGauge = name == "worker_time"
                let seconds = "\(name.dropLast("processorTime".count))processor_seconds_total"
                add(
                    isGauge ? "worker_observed_seconds" : seconds, labels, number / 1_000_000_000,
                    isGauge ? "gauge" : "counter", "bus.metrics: \(name)")
                continue
            }
            let isGauge = Self.gauges.contains(name) || Self.isGauge(name)
            var snake = Self.snake(name)
            if !isGauge, !snake.hasSuffix("_total") { snake += "_total" }
            add(snake, labels, number, isGauge ? "gauge" : "counter", "bus.metrics: \(name)")
        }
        for (key, value) in metrics["histograms"]?.object ?? [:] { add(histogram: key, value) }
    }

    /// Takes in the state of a device.
    mutating func add(device: JSONValue) {
        guard let id = device["id"]?.string else { return }
        let labels = Self.label("device", id)
        func flag(_ name: String) -> Double { device[name]?.bool == true ? 1 : 0 }
        add("device_connected", labels, flag("connected"), "gauge", "Whether the device is connected.")
        add("device_streaming", labels, flag("isStreaming"), "gauge", "Whether the device streams.")
        add("device_locked", labels, device["lock"]?.isNull == false ? 1 : 0, "gauge", "Whether the device is locked.")
        if let rate = device["frameRate"]?.double {
            add("device_frame_rate", labels, rate, "gauge", "The configured frames per second.")
        }
        if let restarts = device["worker"]?["restarts"]?.double {
            add(
                "device_worker_restarts_total", labels, restarts, "counter",
                "How often the process of the device was restarted.")
        }
    }

    /// Takes in a number of the gateway's own.
    mutating func add(gateway name: String, _ value: Int) {
        add(
            "gateway_\(name)", "", Double(value), name.hasSuffix("_total") ? "counter" : "gauge",
            "A value of the gateway.")
    }

    /// Whether the bus is there.
    mutating func add(isUp: Bool) { add("up", "", isUp ? 1 : 0, "gauge", "Whether the bus answers.") }

    var text: String {
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            text += "# HELP \(name) \(family.help)\n# TYPE \(name) \(family.type)\n"
            // A histogram's samples are in the order of their bounds.
            for sample in family.type == "histogram" ? family.samples : family.samples.sorted() {
                text += "\(sample)\n"
            }
        }
        return text
    }

    private mutating func add(_ name: String, _ labels: String, _ value: Double, _ type: String, _ help: String) {
        let name = "camerabus_\(name)"
        families[name, default: Family(type: type, help: help)].samples.append(
            "\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(Self.number(value))")
    }

    private mutating func add(histogram key: String, _ value: JSONValue) {
        guard let bounds = value["bounds"]?.array?.compactMap(\.double),
            let counts = value["counts"]?.array?.compactMap(\.double), counts.count == bounds.count + 1,
            let sum = value["sum"]?.double, let count = value["count"]?.double
        else { return }
        let (raw, labels) = Self.split(key)
        let name = "camerabus_\(Self.snake(raw))"
        let before = labels.isEmpty ? "" : "\(labels),"
        var samples: [String] = []
        var total = 0.0
        for (bound, inside) in zip(bounds, counts) {
            total += inside
            samples.append("\(name)_bucket{\(before)le=\"\(Self.number(bound))\"} \(Self.number(total))")
        }
        samples.append("\(name)_bucket{\(before)le=\"+Inf\"} \(Self.number(count))")
        let own = labels.isEmpty ? "" : "{\(labels)}"
        samples += ["\(name)_sum\(own) \(Self.number(sum))", "\(name)_count\(own) \(Self.number(count))"]
        families[name, default: Family(type: "histogram", help: "bus.metrics: \(raw)")].samples += samples
    }

    // MARK: Names and numbers

    /// `name{label="value"}` in two.
    static func split(_ key: String) -> (name: String, labels: String) {
        guard let brace = key.firstIndex(of: "{"), key.hasSuffix("}") else { return (key, "") }
        return (String(key[..<brace]), String(key[key.index(after: brace)...].dropLast()))
    }

    private static func isGauge(_ name: String) -> Bool {
        let last = name.split(separator: "_").last ?? ""
        return !["total", "frames", "dropped", "lost", "damaged"].contains(String(last)) && !name.hasPrefix("worker_")
    }

    /// As Prometheus has names: `ringReaders` is `ring_readers`.
    static func snake(_ name: String) -> String {
        var text = ""
        for character in name {
            if character.isUppercase {
                text += "_" + character.lowercased()
            } else if character.isASCII, character.isLetter || character.isNumber || character == "_" {
                text.append(character)
            } else {
                text.append("_")
            }
        }
        return text
    }

    static func label(_ name: String, _ value: String) -> String {
        let escaped = value.map { character -> String in
            switch character {
            case "\\": "\\\\"
            case "\"": "\\\""
            case "\n": "\\n"
            default: String(character)
            }
        }
        return "\(name)=\"\(escaped.joined())\""
    }

    private static func number(_ value: Double) -> String {
        if let whole = Int64(exactly: value) { return "\(whole)" }
        return "\(value)"
    }
}
