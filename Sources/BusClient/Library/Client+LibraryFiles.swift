import BusProtocol
import Glibc
public import JSON
import LinuxIO

/// A part of a file of the capture library.
public struct LibraryPart: Sendable {
    /// The file's name, without its folder.
    public let name: String
    /// Bytes of the file.
    public let size: Int64
    /// Bytes in front of the part.
    public let offset: Int64
    /// Parts with different ones don't belong together: it is another file, or was written to.
    public let revision: String
    /// The part: less than was asked for at the end of the file alone.
    public let bytes: Payload
    /// The answer: {id, file, name, size, offset, revision, state, attachments}.
    public let json: JSONValue

    init(_ answer: Answer) throws(ClientError) {
        let json = answer.result
        guard let name = json["name"]?.string, let size = json["size"]?.integer, let offset = json["offset"]?.integer,
            let revision = json["revision"]?.string, let bytes = answer.attachments.first, size >= 0,
            !revision.isEmpty, revision.utf8.allSatisfy({ $0 != UInt8(ascii: "/") }), revision.utf8.count <= 64
        else { throw .unreadable("The answer of the bus to library.read is invalid: it contains no part of the file.") }
        (self.name, self.size, self.offset) = (name, size, offset)
        (self.revision, self.bytes, self.json) = (revision, bytes, json)
    }
}

/// A downloaded file of the capture library.
public struct FetchedFile: Hashable, Sendable {
    /// Where it is now.
    public let path: String
    /// Bytes.
    public let size: Int64
    /// What the library calls it, without its folder.
    public let name: String
    /// Bytes that were here already, of a transfer that was cut off.
    public let resumedAt: Int64
}

extension Client {
    /// The members of an entry that name files, as far as it has them: what is recorded or taken, what lies beside a
    /// movie, the first frame of a take, the movie of a live photo.
    public static let libraryFiles = ["path", "sideCar", "cover", "movie"]

    /// A part of a file of an entry.
    ///
    /// - Parameters:
    ///   - file: the member of the entry that names it.
    ///   - offset: bytes in front of it.
    ///   - length: bytes at most, up to 4 MiB; 0: only what is known of the file.
    /// - Throws: ``ClientError/refused(_:)`` with `entryNotFound`, also for somebody else's and for a file that isn't
    ///   there, `recordingInProgress` while it is being made, or `pathNotAllowed` where it isn't in the library's own
    ///   folder.
    public func readLibrary(
        _ id: String, file: String = "path", offset: Int64 = 0, length: Int, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> LibraryPart {
        try await Reading(self, id, file, timeout).part(at: offset, length: length, until: monotonic(after: timeout))
    }

    /// Brings a file of an entry here, wherever the bus is.
    ///
    /// The file gets its name when it is complete and on the disk. An interrupted download stays as `PATH.….part`, and
    /// the next call resumes there, unless the end of that file differs from the bus's file. If the bus ends
    /// meanwhile, or a temporary limit applies, the call waits within its time limit.
    ///
    /// - Parameters:
    ///   - file: the member of the entry that names it.
    ///   - path: of the new file.
    ///   - replaces: takes the place of a file of that name, or of the one that a link of that name leads to; false:
    ///     ``ClientError/system(_:)`` if there is one.
    ///   - timeout: for each part of at most 4 MiB, less on a slow line; one that doesn't come in time is asked for
    ///     once more, with fewer bytes.
    ///   - progress: told how many bytes are here, and of how many.
    /// - Throws: as ``readLibrary(_:file:offset:length:timeout:)``; ``ClientError/system(_:)`` for what the disk
    ///   refuses, also for what lies beside the file and is none of this user's; ``ClientError/unreadable(_:)`` for a
    ///   file that changes meanwhile.
    @discardableResult
    public func fetchFromLibrary(
        _ id: String, file: String = "path", to path: String, replaces: Bool = false,
        timeout: Duration = defaultTimeout, progress: @Sendable (_ done: Int64, _ size: Int64) -> Void = { _, _ in }
    ) async throws(ClientError) -> FetchedFile {
        let reading = Reading(self, id, file, timeout)
        for _ in 0..<Reading.attempts {
            let target: String
            do throws(SystemError) { target = try PartialFile.place(of: path, replaces: replaces) } catch {
                throw .system(Self.sentence(error))
            }
            let known = try await reading.patiently(at: 0, Pace(length: 0)).part
            let partial: PartialFile
            do throws(SystemError) {
                partial = try PartialFile(target, mark: known.revision, maximum: known.size)
            } catch {
                throw .system(Self.sentence(error))
            }
            let start = partial.count
            // What was written last may not have come to the disk, for all that its size says.
            let isWhole = try await reading.all(from: max(0, start - Reading.tail), of: known) {
                part throws(ClientError) in
                do throws(SystemError) {
                    let fits = try part.bytes.withUnsafeBytes { bytes throws(SystemError) in
                        try partial.add(bytes, at: part.offset)
                    }
                    guard fits else { return false }
                } catch {
                    throw .system(Self.sentence(error))
                }
                progress(partial.count, part.size)
                return true
            }
            guard isWhole else {
                partial.discard()
                continue
            }
            do throws(SystemError) { try partial.publish(replaces: replaces) } catch {
                throw .system(Self.sentence(error))
            }
            return FetchedFile(path: path, size: known.size, name: known.name, resumedAt: start)
        }
        throw Reading.changing(id)
    }

    /// The bytes of a file of an entry, one part after the other.
    ///
    /// - Parameters:
    ///   - file: the member of the entry that names it.
    ///   - timeout: for each part.
    ///   - body: gets the parts in their order; what it throws ends it.
    /// - Throws: as ``fetchFromLibrary(_:file:to:replaces:timeout:progress:)``.
    public func readAllFromLibrary(
        _ id: String, file: String = "path", timeout: Duration = defaultTimeout,
        _ body: (LibraryPart) throws -> Void
    ) async throws {
        let reading = Reading(self, id, file, timeout)
        let known = try await reading.patiently(at: 0, Pace(length: 0)).part
        var failure: (any Error)?
        let isWhole: Bool
        do throws(ClientError) {
            isWhole = try await reading.all(from: 0, of: known) { part throws(ClientError) in
                do { try body(part) } catch {
                    failure = error
                    throw .cancelled
                }
                return true
            }
        } catch {
            throw failure ?? error
        }
        guard isWhole else { throw Reading.changing(id) }
    }

    private static func sentence(_ error: SystemError) -> String {
        error.code == EWOULDBLOCK
            ? "Another program is downloading this file to the same place (\(error))." : "\(error)"
    }

    /// How large the next part is to be.
    private struct Pace {
        /// Bytes.
        var length: Int

        static let least = 16 << 10
        static let first = 64 << 10

        /// Half of it, as far as that is worth asking for.
        var less: Pace { Pace(length: min(length, max(length / 2, Self.least))) }

        /// By how long the one before took: no more is under way than comes in about a second, so that other answers on
        /// the line don't wait for long.
        func next(after duration: Duration) -> Pace {
            if duration < .milliseconds(250) { return Pace(length: min(length * 2, BusLimits.maxLibraryPartBytes)) }
            return duration > .seconds(1) ? Pace(length: max(length / 2, min(length, Self.least))) : self
        }
    }

    /// One file of one entry.
    private struct Reading {
        let client: Client
        let id: String
        let file: String
        let timeout: Duration

        /// How often a file is begun anew that was changed meanwhile.
        static let attempts = 3
        /// Bytes at the end of what was cut off that are compared with the file before it goes on.
        static let tail: Int64 = 1 << 20

        /// That of one answer.
        private static let tooLarge = "remoteReply"
        /// Limits that fewer bytes keep, and all that others' questions, and answers that are on their way, bring about
        /// for a moment.
        private static let ofBytes: Set = ["libraryReplies", "remoteReplies"]
        private static let passing = ofBytes.union(["requestRate", "remoteRequests", "libraryRequests"])

        static func changing(_ id: String) -> ClientError {
            .unreadable(
                "The file of \(id) changed several times while it was read. Try again later.")
        }

        init(_ client: Client, _ id: String, _ file: String, _ timeout: Duration) {
            (self.client, self.id, self.file, self.timeout) = (client, id, file, timeout)
        }

        /// A part of fewer bytes where a limit, or the line, doesn't let that many through, and how many the next is to
        /// have.
        func patiently(at offset: Int64, _ pace: Pace) async throws(ClientError) -> (part: LibraryPart, pace: Pace) {
            var (pace, pause, deadline) = (pace, Duration.milliseconds(50), monotonic(after: timeout))
            while true {
                let begin = MonotonicClock.now()
                do throws(ClientError) {
                    let part = try await part(at: offset, length: pace.length, until: deadline)
                    return (part, pace.next(after: .nanoseconds(MonotonicClock.now() - begin)))
                } catch .refused(let refusal) where refusal.reason == .limitExceeded {
                    let limit = refusal.data["limit"]?.string ?? ""
                    if limit == Self.tooLarge, pace.less.length < pace.length {
                        pace = pace.less
                        continue
                    }
                    guard Self.passing.contains(limit), monotonic(after: pause) < deadline else {
                        throw .refused(refusal)
                    }
                    if Self.ofBytes.contains(limit) { pace = pace.less }
                    do { try await Task.sleep(for: pause) } catch { throw .cancelled }
                    pause = min(pause * 2, .seconds(1))
                } catch .timedOut(let method, let milliseconds) {
                    guard pace.length > Pace.least else { throw .timedOut(method: method, milliseconds: milliseconds) }
                    // What was asked for is still in the line: once more, behind that, and as little as may be.
                    (pace, deadline) = (Pace(length: Pace.least), monotonic(after: timeout))
                }
            }
        }

        /// Also from the next bus, when one ends before it has answered.
        func part(at offset: Int64, length: Int, until deadline: Int64) async throws(ClientError) -> LibraryPart {
            while true {
                let left = max(0, deadline - MonotonicClock.now())
                let params: JSONValue = [
                    "id": .string(id), "file": .string(file), "offset": .integer(offset),
                    "length": JSONValue(length),
                ]
                do throws(ClientError) {
                    let part = try LibraryPart(
                        try await client.request("library.read", params, timeout: .nanoseconds(left)))
                    guard part.offset == offset, part.bytes.count <= length else {
                        throw .unreadable(
                            "The answer of the bus to library.read is invalid: it contains another part of the file.")
                    }
                    return part
                } catch .connectionLost(let method) {
                    guard !Task.isCancelled, left > 0 else { throw .connectionLost(method: method) }
                }
            }
        }

        /// Calls the body with all parts from there on.
        ///
        /// - Parameter body: returns false when the part doesn't belong to what is here.
        /// - Returns: false: that, or the file was changed meanwhile.
        func all(
            from start: Int64, of known: LibraryPart, _ body: (LibraryPart) throws(ClientError) -> Bool
        ) async throws(ClientError) -> Bool {
            guard start < known.size else { return true }
            var (part, pace) = try await patiently(at: start, Pace(length: Pace.first))
            while true {
                guard part.revision == known.revision else { return false }
                let end = part.offset + Int64(part.bytes.count)
                guard part.bytes.count > 0, end <= known.size else {
                    throw .unreadable("The answer of the bus to library.read is invalid: the file is longer.")
                }
                guard end < known.size else { return try body(part) }
                // While the one is written, the next comes.
                let (reading, nextPace) = (self, pace)
                let next = Task { () -> Result<(part: LibraryPart, pace: Pace), ClientError> in
                    do throws(ClientError) {
                        return .success(try await reading.patiently(at: end, nextPace))
                    } catch {
                        return .failure(error)
                    }
                }
                do throws(ClientError) {
                    guard try body(part) else {
                        next.cancel()
                        return false
                    }
                } catch {
                    next.cancel()
                    throw error
                }
                let outcome = await withTaskCancellationHandler {
                    await next.value
                } onCancel: {
                    next.cancel()
                }
                (part, pace) = try outcome.get()
            }
        }
    }
}

extension PartialFile {
    /// Where a new file goes: where a link leads that is to be replaced.
    ///
    /// - Throws: for what can't be written there, so that this isn't told after all has come.
    fileprivate static func place(of path: String, replaces: Bool) throws(SystemError) -> String {
        func refusal(_ code: Int32) -> SystemError { SystemError(code: code, operation: "open", subject: path) }
        var status = stat()
        guard lstat(path, &status) == 0 else {
            let code = errno
            guard code == ENOENT else { throw refusal(code) }
            return path
        }
        guard replaces else { throw refusal(EEXIST) }
        // One that leads nowhere is replaced itself.
        guard stat(path, &status) == 0, let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw refusal(status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL)
        }
        return String(cString: resolved)
    }
}
