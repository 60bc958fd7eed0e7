import BusProtocol
import BusServer
import CaptureCore
import LinuxIO
import Logging
import ZeroMQ

/// The parts that every recorder process needs: the lock file, the loop and the logger.
struct RecorderProcess {
    let directory: RuntimeDirectory
    let loop: Loop
    let context: Context
    let logger: Logger
    private let lock: LockFile

    /// Takes the movie's lock file. To be called on the thread that then runs the loop.
    ///
    /// - Throws: `movieTaken` when another process has the movie.
    init(_ options: RecorderOptions, logger: Logger) throws(RecorderError) {
        let movie = options.request.movie
        var logger = logger
        logger[metadataKey: "movie"] = "\(movie)"
        self.logger = logger
        do throws(RuntimeDirectory.PathError) {
            directory = try RuntimeDirectory(options.runtimeDirectory)
        } catch {
            throw .usage("\(error)")
        }
        let lockPath = directory.movieLock(movie)
        do throws(SystemError) {
            lock = try LockFile(lockPath, isSigned: true)
        } catch {
            throw error.isWouldBlock ? .movieTaken(lockPath) : .failed("\(error)")
        }
        CurrentProcess.raiseDescriptorLimit()
        do {
            loop = try Loop()
            context = try Context()
        } catch {
            throw .failed("\(error)")
        }
    }
}
