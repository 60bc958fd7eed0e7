import BusClient
import BusProtocol
import Glibc

/// Joins the segments of a take to one file.
struct TakeJoin {
    let client: Client
    let patience: Duration

    /// A joined take, with the paths of its files for this user.
    struct Finished {
        var take: FinishedTake
        var path: String
        var cover: String?
        /// How to get the files; nil: they are on this machine.
        var advice: String?
    }

    /// Joins the segments. If the bus may not write to the target, it uses its library, and the files are copied from
    /// there.
    ///
    /// - Parameters:
    ///   - target: absolute; nil: in the library.
    ///   - name: what it is called there.
    ///   - replaces: moves an existing file aside; it gets its name back if there is no new one.
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

    /// The note for a user who stops waiting: the bus joins the segments anyway.
    static func goesOn(_ id: String) -> String {
        "The bus continues to join the segments. 'camerabus take show \(id)' fails with takeNotFound when it is done; "
            + "then 'camerabus library list --take \(id)' shows the movie."
    }

    private func join(_ id: String, to target: String? = nil, name: String? = nil) async throws(ClientError)
        -> FinishedTake
    {
        do throws(ClientError) {
            let take = try await client.finishTake(id, path: target, name: name, timeout: patience)
            PersistenceNote.note(take.json)
            return take
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
        Output.note("The bus may not write there. The movie is stored in its library, and copied from there.")
        let take = try await join(id)
        do {
            try await download.fetch(id, from: take.path, to: target)
            guard let cover = take.cover else { return Finished(take: take, path: target, cover: nil) }
            let picture = Self.cover(of: target)
            try await download.fetch(id, "cover", from: cover, to: picture)
            return Finished(take: take, path: target, cover: picture)
        } catch {
            Output.note(Table.printable(Download.way(to: id, target)))
            throw error
        }
    }
}
