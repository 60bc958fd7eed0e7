import BusProtocol
import CaptureCore
import JSON
import Logging

/// How much of the capture library each user has, and may have (`library.quota`).
///
/// The librarian counts what the entries say: at the start, and before anybody is refused, unless nothing has changed
/// since. In between, what is recorded is added here. So no request that is within the limit costs a look at the disk.
final class LibraryQuota {
    private let librarians: LibrarianSupervisor
    private let logger: Logger
    /// Bytes that each user may have; 0: as many as there are.
    private var quota: Int64 = 0
    /// Bytes by user; what was deleted since they were counted is still in them. nil: not counted yet.
    private var used: [UInt32: Int64]?
    /// It is what the librarian would count now.
    private var isExact = false
    private var isCounting = false
    /// How often it was counted in a row, because something changed meanwhile.
    private var attempts = 0
    /// Added while the librarian counts, which may have seen it or not.
    private var added: [UInt32: Int64] = [:]
    /// Called when it was counted, or could not be.
    private var waiting: [(uid: UInt32?, body: () -> Void)] = []
    /// Bytes of the movies of a user that are being recorded into the library.
    var recording: (_ uid: UInt32) -> Int64 = { _ in 0 }

    private static let maximumAttempts = 3

    init(_ librarians: LibrarianSupervisor, logger: Logger) {
        self.librarians = librarians
        self.logger = logger
        librarians.onChange = { [weak self] in self?.changed($0) }
    }

    /// From now on each user may have so many bytes; 0: as many as there are. It is counted anew.
    func use(_ quota: Int64) {
        self.quota = quota
        (used, isExact) = (nil, false)
        if quota > 0 { count() }
    }

    // MARK: Requests

    /// Calls the body with why a user may record nothing more; nil: the user may. At once, unless it has to be counted
    /// first. Where that fails, as on a disk that is stuck, what was known before counts.
    func check(_ uid: UInt32, then body: @escaping (BusError?) -> Void) {
        guard quota > 0 else { return body(nil) }
        if let used = total(uid), used < quota || isExact { return body(used < quota ? nil : refusal(used)) }
        guard waiting.count(where: { $0.uid == uid }) < LibrarianSupervisor.maximumOfUser else {
            return body(LibrarianSupervisor.tooMany)
        }
        count(for: uid) { [weak self] in
            guard let self, quota > 0, let used = total(uid), used >= quota else { return body(nil) }
            body(refusal(used))
        }
    }

    /// Calls the body if that user has reached the limit; perhaps later, when it was counted.
    func whenReached(by uid: UInt32, _ body: @escaping () -> Void) {
        guard isReached(by: uid) else { return }
        guard !isExact else { return body() }
        // Movies report often: whoever comes next asks again.
        guard !isCounting else { return }
        count { [weak self] in
            if let self, isReached(by: uid) { body() }
        }
    }

    private func isReached(by uid: UInt32) -> Bool { quota > 0 && total(uid).map { $0 >= quota } ?? false }

    /// Bytes: what is stored, and what is being recorded.
    private func total(_ uid: UInt32) -> Int64? { used.map { Self.sum($0[uid] ?? 0, recording(uid)) } }

    private static func sum(_ one: Int64, _ other: Int64) -> Int64 {
        let sum = one.addingReportingOverflow(other)
        return sum.overflow ? .max : sum.partialValue
    }

    private func refusal(_ used: Int64) -> BusError {
        BusError(
            .limitExceeded,
            "Your recordings take \(Self.words(used)) of the library, and each user may have \(Self.words(quota)). "
                + "Delete some (library.delete), or ask an administrator for more ('quota' below [library] in "
                + "camerabus.toml).",
            ["limit": "libraryQuota", "maximum": .integer(quota), "used": .integer(used)])
    }

    /// `740 kB`, `24 MB`, `1320 MB`.
    private static func words(_ bytes: Int64) -> String {
        bytes < 1_000_000 ? "\(bytes / 1000) kB" : "\(bytes / 1_000_000) MB"
    }

    // MARK: What is stored

    /// A recording of that user is in the library.
    func add(_ bytes: Int64, of uid: UInt32) {
        guard quota > 0, bytes > 0 else { return }
        if let known = used { used?[uid] = Self.sum(known[uid] ?? 0, bytes) }
        if isCounting { added[uid] = Self.sum(added[uid] ?? 0, bytes) }
    }

    private func changed(_ action: LibrarianRequest.Action) {
        guard quota > 0 else { return }
        switch action {
        // What there is less of is counted when it matters, and what there may be more of now.
        case .delete: isExact = false
        case .join, .recover, .giveUp:
            isExact = false
            if !isCounting { count() }
        case .list, .get, .read, .left, .applyAccess, .usage: break
        }
    }

    private func count(for uid: UInt32? = nil, then body: @escaping () -> Void = {}) {
        waiting.append((uid, body))
        guard !isCounting else { return }
        attempts = 0
        ask()
    }

    private func ask() {
        (isCounting, isExact, added) = (true, true, [:])
        attempts += 1
        librarians.ask(LibrarianRequest(.usage), by: nil) { [weak self] in self?.counted($0) }
    }

    private func counted(_ result: Result<JSONValue, BusError>) {
        isCounting = false
        switch result {
        case .success(let answer):
            if !added.isEmpty { isExact = false }
            var bytes = added
            for user in answer["users"]?.array ?? [] {
                guard let uid = user["uid"]?.integer.flatMap({ UInt32(exactly: $0) }) else { continue }
                bytes[uid] = Self.sum(bytes[uid] ?? 0, user["bytes"]?.integer ?? 0)
            }
            used = bytes
            if !isExact, attempts < Self.maximumAttempts { return ask() }
        case .failure(let error):
            isExact = false
            logger.warning("the capture library can't be counted", metadata: ["error": "\(error.message)"])
        }
        let bodies = waiting
        waiting = []
        for (_, body) in bodies { body() }
    }
}
