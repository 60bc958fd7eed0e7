import BusProtocol
import CameraBusTesting
import LinuxIO

/// What each fault came to: what the driver did, what a subscriber saw, and how long until frames were back.
final class FaultTable {
    let recorder: FrameRecorder
    private var rows: [String] = []
    private var start = (time: Int64(0), place: 0)

    init(_ recorder: FrameRecorder) { self.recorder = recorder }

    /// A fault is about to be made.
    ///
    /// - Returns: the place of the last frame before it.
    func begin() -> Int {
        start = (MonotonicClock.now(), recorder.entries.count - 1)
        return start.place
    }

    func note(_ fault: String, driver: String, back: (place: Int, entry: FrameRecorder.Entry)) {
        let entries = recorder.entries
        let between = entries[start.place..<back.place]
        let errors = Set(between.compactMap { $0.error?.reason.rawValue }).sorted()
        let seen = [
            back.entry.stream == entries[start.place].stream ? "same stream" : "new stream",
            errors.isEmpty ? nil : "told \(errors.joined(separator: ", "))",
        ].compactMap { $0 }.joined(separator: ", ")
        let columns = [
            fault.padding(to: 24), driver.padding(to: 30), seen.padding(to: 46),
            "\((back.entry.arrival - start.time) / 1_000_000) ms",
        ]
        rows.append(columns.joined(separator: " | "))
    }

    func print() {
        Swift.print("fault | driver | subscriber | frames are back after")
        for row in rows { Swift.print(row) }
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
