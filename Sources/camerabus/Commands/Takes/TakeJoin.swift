import BusClient
import BusProtocol
import Glibc

/// The end of a take: its segments become one file.
struct TakeJoin {
    let client: Client
    let patience: Duration

    /// A take that is joined, with the files where this user finds them.
    struct Finished {
        var take: FinishedTake
        var path: String
        var cover: String?
        /// nil: the files are here; else how to have them.
        var advice: String?
    }

    /// Joins the segments; where the bus may not write, in its library, from where the files are copied.
    ///
    /// - Parameters:
    ///   - target: absolute; nil: in the library.
    ///   - name: what it is called there.
    ///   - replaces: a file that is there already makes room, and comes back where there is no new one.
    /// - Throws: ``Failure`` when neither can be.
    func finish(
        _ id: String, to target: String?, name: String? = nil, replaces: Bool = false
    ) async throws -> Finished {
        guard replaces, let target else { return try await finish(id, target, name) }
        var aside = BackupFiles()
        do {
            try aside.move(target, with: [MovieFileNames.sideCar(of: target), Self.cover(of: target)])
            let finished = try await finish(id, target, name)
            aside.settle(replaced: [target])
            return finished
        } catch {
            switch error as? ClientError {
            // The new one is still to come.
            case .cancelled, .timedOut: aside.noteKept()
            default: aside.settle(replaced: [])
            }
            throw error
        }
    }

    /// What the bus calls the cover of a take's movie.
    static func cover(of path: String) -> String { "\(path.dropLast(4)).jpg" }

    private func finish(_ id: String, _ target: String?, _ name: String?) async throws -> Finished {
        let refusal: ClientError
        do throws(ClientError) {
            let take = try await join(id, to: target, name: name)
            let (path, advice) = Download.place(of: take.id, take.path, client)
            return Finished(take: take, path: path, cover: advice == nil ? take.cover : nil, advice: advice)
        } catch {
            refusal = error
        }
        guard refusal.reason == .pathNotAllowed, let target else { throw refusal }
        return try await finishInLibrary(id, copyingTo: target)
    }

    /// What becomes of a take that nobody waits for any more while its segments are joined: the bus does not ask who waits.
    static func goesOn(_ id: String) -> String {
        "The bus goes on joining: 'camerabus take show \(id)' tells when the take is over, 'camerabus library list --take \(id)' where the movie is."
    }

    private func join(_ id: String, to target: String? = nil, name: String? = nil) async throws(ClientError)
        -> FinishedTake
    {
        do throws(ClientError) {
            return try await client.finishTake(id, path: target, name: name, timeout: patience)
        } catch {
            switch error {
            case .cancelled, .timedOut: Output.note(Table.printable(Self.goesOn(id)))
            default: break
            }
            throw error
        }
    }

    private func finishInLibrary(_ id: String, copyingTo target: String) async throws -> Finished {
        let segments = try await client.take(id).segments
        let download = Download(client, timeout: patience, replaces: false)
        // Before the segments are gone.
        if let first = segments.first { try await download.check(segments.map(\.path), of: first.id) }
        Output.note("The bus may not write there: the movie goes into its library, and comes from there.")
        let take = try await join(id)
        do {
            try await download.bring(id, from: take.path, to: target)
            guard let cover = take.cover else { return Finished(take: take, path: target, cover: nil) }
            let picture = Self.cover(of: target)
            try await download.bring(id, "cover", from: cover, to: picture)
            return Finished(take: take, path: target, cover: picture)
        } catch {
            Output.note(Table.printable(Download.way(to: id, target)))
            throw error
        }
    }
}
