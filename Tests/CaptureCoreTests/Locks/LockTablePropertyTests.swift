import Testing

@testable import CaptureCore

/// Random histories against what must hold whatever happens.
@Suite struct LockTablePropertyTests {
    @Test(arguments: seeds) func randomHistories(seed: UInt64) throws {
        for (index, isPunctual) in [true, false].enumerated() {
            let history = History(seed: seed &+ UInt64(index) &* 1_000_003, isPunctual: isPunctual)
            for step in 0..<1000 {
                history.step()
                if let broken = history.broken {
                    Issue.record("seed \(seed), punctual \(isPunctual), step \(step): \(broken)")
                    return
                }
            }
            history.drain()
            #expect(history.broken == nil, "seed \(seed), punctual \(isPunctual), at the end")
            #expect(history.granted > 100, "seed \(seed): the history is too dull")
        }
    }
}

/// A table and, beside it, the plainest possible record of what it said.
private final class History {
    private struct Open {
        var devices: [String]
        var pid: Int32
        var deadline: Instant
    }

    private(set) var broken: String?
    private(set) var granted = 0
    private var table = LockTable()
    private var random: SeededGenerator
    /// Brings the table to each deadline when it is due; else calls come late.
    private let isPunctual: Bool
    private var now: Instant = 1000
    private var tickets: UInt64 = 0
    private var open: [UInt64: Open] = [:]
    private var held: [String: Lock] = [:]
    private var ended: [String] = []
    private var lastFence: UInt64 = 0
    private let devices = ["a", "b", "c", "d", "e", "f"]

    init(seed: UInt64, isPunctual: Bool) {
        random = SeededGenerator(seed: seed)
        self.isPunctual = isPunctual
    }

    func step() {
        pass(time: random.chance(70) ? random.below(20) : random.below(400))
        switch random.below(100) {
        case 0..<55: ask()
        case 55..<75: unlock()
        case 75..<80: renew()
        case 80..<84: ask(takingOver: true)
        case 84..<89:
            if let ticket = table.waitingTickets.randomElement(using: &random) {
                check("cancel", table.cancel(ticket: ticket, at: now)) { if open[ticket] != nil { $0("not answered") } }
            }
        case 89..<94: endHolder()
        case 94..<96:
            let device = random.pick(devices)
            check("endDevice", table.endDevice(device, at: now)) {
                if held[device] != nil { $0("\(device) is held after its end") }
            }
        case 96..<98: rename()
        default: check("advance", table.advance(to: now))
        }
    }

    /// Whoever holds lets go: then everybody must have been served, else the table had locked itself up.
    func drain() {
        while broken == nil, let lock = table.locks.first {
            guard let actions = table.unlock(tokenHash: lock.tokenHash, at: now) else {
                check("advance", table.advance(to: now))
                continue
            }
            check("unlock", actions)
        }
        if broken == nil, !open.isEmpty { broken = "\(open.count) requests were never answered" }
    }

    private func pass(time: Int) {
        let then = now + Instant(time)
        while isPunctual, broken == nil, let due = table.nextDeadline, due <= then {
            now = due
            check("advance", table.advance(to: due))
        }
        now = then
    }

    private func ask(takingOver: Bool = false) {
        tickets += 1
        let request = LockRequest(
            ticket: tickets, lockID: "l\(tickets)", tokenHash: "t\(tickets)",
            devices: random.some(devices, atMost: random.chance(80) ? 2 : 5),
            holder: LockHolder(uid: 1, gid: 1, pid: Int32(random.below(6)), startTime: 5, name: ""),
            wait: random.chance(30) ? 0 : Int64(random.below(600)),
            lease: random.chance(40) ? Int64(random.below(300)) : nil)
        open[tickets] = Open(
            devices: request.devices, pid: request.holder.pid, deadline: now + (takingOver ? 1 : request.wait))
        if takingOver {
            check("takeOver", table.takeOver(request, at: now), isQueueJumped: true) {
                if open[request.ticket] != nil { $0("not answered at once") }
            }
        } else {
            check("request", table.request(request, at: now)) {
                if request.wait == 0, open[request.ticket] != nil {
                    $0("a request without wait was not answered at once")
                }
            }
        }
    }

    private func unlock() {
        guard let lock = table.locks.randomElement(using: &random) else { return }
        let isOver = lock.expires.map { $0 <= now } ?? false
        let actions = table.unlock(tokenHash: lock.tokenHash, at: now)
        if isOver != (actions == nil) { broken = "unlock of \(lock) at \(now): \(String(describing: actions))" }
        check("unlock", actions ?? [], hasAdvanced: actions != nil)
    }

    private func renew() {
        guard let lock = table.locks.randomElement(using: &random) else { return }
        let isOver = lock.expires.map { $0 <= now } ?? false
        let renewed = table.renew(tokenHash: lock.tokenHash, at: now)
        if isOver != (renewed == nil) { broken = "renew of \(lock) at \(now)" }
        if let renewed { for device in renewed.devices { held[device] = renewed } }
    }

    private func endHolder() {
        let pid = Int32(random.below(6))
        check("endHolder", table.endHolder(pid: pid, startTime: 5, cause: .holderExited, at: now)) { fail in
            if pid == 0 { return }
            if open.values.contains(where: { $0.pid == pid }) { fail("a wait of \(pid) is left") }
            if held.values.contains(where: { $0.holder.pid == pid && $0.lease == nil }) {
                fail("a lock of \(pid) is left")
            }
        }
    }

    private func rename() {
        let (old, new) = (random.pick(devices), "z")
        // There and back, so that the set of names stays as it is.
        table.rename(device: old, to: new)
        if table.lock(on: old) != nil || !table.waiters(on: old).isEmpty {
            broken = "\(old) is still there after its renaming"
        }
        table.rename(device: new, to: old)
    }

    /// Takes what a call answered into the record, then compares record and table.
    private func check(
        _ call: String, _ actions: [LockTable.Action], hasAdvanced: Bool = true, isQueueJumped: Bool = false,
        further: ((String) -> Void) -> Void = { _ in }
    ) {
        var problems: [String] = []
        for (index, action) in actions.enumerated() {
            switch action {
            case .grant(let ticket, let lock):
                granted += 1
                guard let request = open.removeValue(forKey: ticket) else {
                    problems.append("\(ticket) answered twice")
                    continue
                }
                if lock.fence <= lastFence { problems.append("fence \(lock.fence) after \(lastFence)") }
                lastFence = lock.fence
                if isPunctual, request.deadline <= now, request.deadline != now || lock.since != now {
                    problems.append("\(ticket) granted after its limit")
                }
                if Set(lock.devices) != Set(request.devices) { problems.append("\(ticket) got other devices") }
                for device in lock.devices {
                    if let other = held[device] { problems.append("\(device) granted while \(other.id) holds it") }
                    held[device] = lock
                }
                let earlier = open.filter { $0.key < ticket && !Set($0.value.devices).isDisjoint(with: lock.devices) }
                let isJumper = isQueueJumped && index == actions.lastIndex { $0.ticket == tickets }
                if !isJumper, let overtaken = earlier.keys.first(where: { isStillOpen($0, after: index, in: actions) })
                {
                    problems.append("\(ticket) overtook \(overtaken)")
                }
            case .refuse(let ticket, let refusal):
                guard let request = open.removeValue(forKey: ticket) else {
                    problems.append("\(ticket) answered twice")
                    continue
                }
                if case .timeout = refusal {
                    if now < request.deadline { problems.append("\(ticket) refused before its limit") }
                    if isPunctual, now > request.deadline { problems.append("\(ticket) refused after its limit") }
                } else if case .busy(let device, _, _) = refusal, held[device] == nil, table.waiters(on: device).isEmpty
                {
                    problems.append("\(ticket) refused for \(device), which is free")
                }
            case .end(let lock, let cause, _):
                for device in lock.devices {
                    if held[device]?.id != lock.id { problems.append("\(lock.id) ended and held no \(device)") }
                    held[device] = nil
                }
                if cause == .leaseExpired, lock.expires.map({ $0 > now }) ?? true {
                    problems.append("\(lock.id) ended before its lease")
                }
                ended.append(lock.tokenHash)
            }
        }
        further { problems.append($0) }
        compare(hasAdvanced, &problems)
        if let first = problems.first { broken = "\(call) at \(now): \(first)" }
    }

    private func isStillOpen(_ ticket: UInt64, after index: Int, in actions: [LockTable.Action]) -> Bool {
        !actions[(index + 1)...].contains { $0.ticket == ticket }
    }

    private func compare(_ hasAdvanced: Bool, _ problems: inout [String]) {
        let inTable = Dictionary(
            table.locks.flatMap { lock in lock.devices.map { ($0, lock.id) } }, uniquingKeysWith: { "\($0) and \($1)" })
        if inTable != held.mapValues(\.id) { problems.append("the table holds \(inTable)") }
        if table.locks.map(\.fence) != table.locks.map(\.fence).sorted() { problems.append("locks are not in order") }
        if table.fence != lastFence { problems.append("the table's fence is \(table.fence)") }
        if Set(table.waitingTickets) != Set(open.keys) {
            problems.append("\(table.waitingTickets) wait, not \(open.keys)")
        }

        // No lost wake-up and no deadlock: whoever waits has a held device, or one that an earlier one waits for.
        var taken = Set(held.keys)
        for ticket in table.waitingTickets {
            let wanted = open[ticket]?.devices ?? []
            if taken.isDisjoint(with: wanted) { problems.append("\(ticket) waits for what is free") }
            taken.formUnion(wanted)
        }
        if hasAdvanced {
            if let late = open.first(where: { $0.value.deadline <= now }) {
                problems.append("\(late.key) waits beyond its limit")
            }
            if table.locks.contains(where: { $0.expires.map { $0 < now } ?? false }) {
                problems.append("an old lease is left")
            }
        }
        for token in ended.suffix(5) {
            if case .success = table.authorize(tokenHash: token, devices: []) {
                problems.append("\(token) still counts")
            }
        }
        let due = (table.locks.compactMap(\.expires) + open.values.map(\.deadline)).min()
        if table.nextDeadline != due {
            problems.append("the next deadline is \(String(describing: table.nextDeadline))")
        }
    }
}

extension LockTable.Action {
    fileprivate var ticket: UInt64? {
        switch self {
        case .grant(let ticket, _), .refuse(let ticket, _): ticket
        case .end: nil
        }
    }
}
