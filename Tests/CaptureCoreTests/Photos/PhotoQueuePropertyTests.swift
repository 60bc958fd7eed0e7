import BusProtocol
import JSON
import Testing

@testable import CaptureCore

/// Random histories of requests, workers and losses against what must hold whatever happens.
@Suite struct PhotoQueuePropertyTests {
    @Test(arguments: seeds) func randomHistories(seed: UInt64) {
        let history = PhotoHistory(seed: seed)
        for step in 0..<3000 {
            history.step()
            if let broken = history.broken {
                Issue.record("seed \(seed), step \(step): \(broken)")
                return
            }
        }
        history.drain()
        #expect(history.broken == nil, "seed \(seed), at the end")
        #expect(history.successes > 50 && history.failures > 50, "seed \(seed): the history is too dull")
    }
}

/// A queue, and beside it workers that answer when they like, and the plainest record of what was told.
private final class PhotoHistory {
    private enum Order: Hashable {
        case prepare, drop
        /// What is left to report.
        case take([Report])
    }

    private enum Report: Hashable {
        case willCapture, didCapture
        case processed(Int)
    }

    private struct Asked: Hashable {
        var job: String
        var device: String
    }

    private struct Told {
        var devices: [String]
        /// Of a moment that is over.
        var isPast = false
        var stages: [PhotoJobStage] = []
        var photos: [String] = []
        var prepared: Set<String> = []
        var isTaken = false
        var isOver = false
    }

    private(set) var broken: String?
    private(set) var successes = 0
    private(set) var failures = 0
    private var queue = PhotoQueue()
    private var random: SeededGenerator
    private var number = 0
    private var orders: [Asked: [Order]] = [:]
    private var told: [String: Told] = [:]
    /// Jobs that are not over, in the order in which they came.
    private var line: [String] = []
    /// Who has the device for itself.
    private var holders: [String: String] = [:]
    private let devices = ["a", "b", "c", "d"]
    private let photosPerDevice = 2

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    func step() {
        switch random.below(100) {
        case 0..<25 where line.count < 20: add()
        case 25..<28:
            let device = random.pick(devices)
            for asked in orders.keys where asked.device == device { orders[asked] = nil }
            for holder in holders where holder.key == device { holders[holder.key] = nil }
            take(queue.lost(device, BusError(.workerCrashed, "It ended.")))
        case 28..<33:
            guard let job = line.randomElement(using: &random) else { return }
            let keepsCaptured = random.chance(50)
            take(queue.end(job, BusError(.cancelled, "Enough."), keepsCaptured: keepsCaptured))
        default: work(fails: random.chance(8))
        }
    }

    func drain() {
        for _ in 0..<100_000 where !orders.isEmpty && broken == nil { work(fails: false) }
        guard broken == nil else { return }
        if !orders.isEmpty || queue.count > 0 || !line.isEmpty { broken = "something is left: \(line)" }
    }

    private func add() {
        number += 1
        let job = "job-\(number)"
        let chosen = random.some(devices, atMost: 3)
        let isPast = random.chance(15)
        told[job] = Told(devices: chosen, isPast: isPast)
        line.append(job)
        guard let steps = try? queue.add(job, devices: chosen, isPast: isPast) else {
            return fail("\(job) was refused")
        }
        if isPast, !steps.starts(with: chosen.map { .prepare(job: job, device: $0) }) {
            return fail("\(job) waits for others")
        }
        take(steps)
    }

    /// Some worker does some of what it was asked.
    private func work(fails: Bool) {
        let waiting = orders.keys.sorted { ($0.job, $0.device) < ($1.job, $1.device) }
        guard let asked = waiting.randomElement(using: &random), var list = orders[asked], !list.isEmpty else { return }
        let index = random.below(list.count)
        let (job, device) = (asked.job, asked.device)
        let error = BusError(.interrupted, "Something came between.")
        switch list[index] {
        case .prepare:
            list.remove(at: index)
            orders[asked] = list.isEmpty ? nil : list
            if fails {
                release(device, job)
            } else {
                told[job]?.prepared.insert(device)
            }
            let resolution = PhotoResolution(
                device: device, format: .jpeg, dimensions: Dimensions(width: 2, height: 2), pixelFormat: .yuyv,
                photos: photosPerDevice)
            take(queue.prepared(job, device, fails ? .failure(error) : .success(resolution)))
        case .drop:
            list.remove(at: index)
            orders[asked] = list.isEmpty ? nil : list
            release(device, job)
            take(queue.dropped(job, device))
        case .take(var reports):
            guard !fails, !reports.isEmpty else {
                list.remove(at: index)
                orders[asked] = list.isEmpty ? nil : list
                if list.isEmpty { release(device, job) }
                let photos = (0..<photosPerDevice).map { photo(device, $0) }
                return take(queue.taken(job, device, fails ? .failure(error) : .success(photos)))
            }
            let report = reports.removeFirst()
            // Reports get lost at times.
            let isLost = random.chance(5)
            list[index] = .take(reports)
            orders[asked] = list
            guard !isLost else { return }
            switch report {
            case .willCapture: take(queue.progressed(job, device, .willCapture))
            case .didCapture:
                if list == [.take(reports)] { release(device, job) }
                take(queue.progressed(job, device, .didCapture))
            case .processed(let index):
                take(queue.progressed(job, device, .processed, photo: photo(device, index)))
            }
        }
    }

    private func release(_ device: String, _ job: String) {
        if holders[device] == job { holders[device] = nil }
    }

    private func photo(_ device: String, _ index: Int) -> PhotoResult {
        PhotoResult(
            device: device, index: index, fileType: .jpeg, dimensions: Dimensions(width: 2, height: 2), bytes: 1,
            timestamp: .init(monotonic: 0, realtime: 0, source: "dequeue"), sequence: 0, stream: "s")
    }

    // MARK: What the queue decides

    private func take(_ steps: [PhotoStep]) {
        for step in steps { take(step) }
    }

    private func take(_ step: PhotoStep) {
        switch step {
        case .prepare(let job, let device):
            orders[Asked(job: job, device: device), default: []].append(.prepare)
            guard told[job]?.isPast == false else { return }
            if let holder = holders[device] { return fail("\(job) gets \(device), which \(holder) has") }
            if let earlier = line.prefix(while: { $0 != job }).first(where: { isWaiting($0, for: device) }) {
                return fail("\(job) gets \(device) before \(earlier)")
            }
            holders[device] = job
        case .take(let job, let devices):
            guard told[job]?.prepared == Set(devices), told[job]?.stages == [.willBeginCapture],
                told[job]?.devices == devices
            else { return fail("\(job) is taken before all are ready, or before that was told") }
            told[job]?.isTaken = true
            let all = (0..<photosPerDevice).map(Report.processed)
            for device in devices {
                let reports: [Report] =
                    random.chance(30)
                    ? [.willCapture, all[0], .didCapture] + all.dropFirst() : [.willCapture, .didCapture] + all
                orders[Asked(job: job, device: device), default: []].append(.take(reports))
            }
        case .drop(let job, let device):
            if told[job]?.isOver != false { return fail("\(job) is dropped after its end") }
            orders[Asked(job: job, device: device), default: []].append(.drop)
        case .tell(let job, let stage, let members): tell(job, stage, members["photo"])
        case .record(let job, _), .unrecord(let job), .store(let job, _): fail("\(job) is no live photo")
        case .finish(let job, let result): finish(job, result)
        }
    }

    private func isWaiting(_ job: String, for device: String) -> Bool {
        guard let entry = told[job], entry.devices.contains(device) else { return false }
        return queue.job(job)?.isWaiting ?? false
    }

    private func tell(_ job: String, _ stage: PhotoJobStage, _ photo: JSONValue?) {
        guard let entry = told[job], !entry.isOver else { return fail("\(job) has a stage after its end: \(stage)") }
        let all = PhotoJobStage.allCases
        let last = entry.stages.last.flatMap(all.firstIndex) ?? -1
        let place = all.firstIndex(of: stage) ?? -1
        let isAgain = stage == .didFinishProcessingPhoto && entry.stages.last == stage
        // All but the last stage come one right after the other.
        guard isAgain || place == last + 1 || stage == .didFinishCapture && place > last else {
            return fail("\(job): \(stage) comes behind \(entry.stages)")
        }
        if let photo = photo.map({ "\($0["device"] ?? 0) \($0["index"] ?? 0)" }) {
            if entry.photos.contains(photo) { return fail("\(job): \(photo) is told twice") }
            told[job]?.photos.append(photo)
        }
        told[job]?.stages.append(stage)
    }

    private func finish(_ job: String, _ result: Result<PhotoOutcome, BusError>) {
        guard let entry = told[job], !entry.isOver, entry.stages.last == .didFinishCapture else {
            return fail("\(job) ends before that was told, or twice")
        }
        switch result {
        case .success(let outcome):
            successes += 1
            let expected = entry.devices.count * photosPerDevice
            if outcome.photos.count != expected || entry.photos.count != expected {
                return fail("\(job) has \(outcome.photos.count) photos, \(entry.photos.count) told, not \(expected)")
            }
        case .failure(let error):
            failures += 1
            let count = error.data["photos"]?.array?.count ?? 0
            // Of one that never captured nothing was told of photos.
            if entry.stages.contains(.didCapturePhoto), count != entry.photos.count {
                return fail("\(job) failed with \(count) photos, and \(entry.photos.count) were told")
            }
        }
        told[job]?.isOver = true
        line.removeAll { $0 == job }
        if holders.values.contains(job) { fail("\(job) has ended and still has a device") }
    }

    private func fail(_ why: String) { broken = broken ?? why }
}
